#include "gates/compat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>

namespace sluice::gates {
namespace {

struct EngineName {
    CompatEngine engine;
    std::string_view name;
    std::string_view version_path;
    /// Where the version stands in that answer, as a JSON Pointer.
    std::string_view version_pointer;
};

// Paths: vLLM and SGLang API servers; llama.cpp's server describes itself in /props.
constexpr auto kEngines = std::to_array<EngineName>({
    {CompatEngine::kNative, "native", "", ""},
    {CompatEngine::kDeepInfer, "deepinfer", "", ""},
    {CompatEngine::kVllm, "vllm", "/version", "/version"},
    {CompatEngine::kSglang, "sglang", "/server_info", "/version"},
    {CompatEngine::kLlamaCpp, "llama.cpp", "/props", "/build_info"},
});

const EngineName& entry(CompatEngine engine) { return kEngines[static_cast<std::size_t>(engine)]; }

/// Collects the items of one engine.
class Checks {
public:
    explicit Checks(CompatEngine engine) : subject_(to_string(engine)) {}

    void add(std::string item, std::string required, std::string found, bool good,
             std::string advice) {
        if (found.empty()) found = "none";
        items_.push_back({.subject = subject_,
                          .item = std::move(item),
                          .required = std::move(required),
                          .found = std::move(found),
                          .verdict = good ? Verdict::kPass : Verdict::kFail,
                          .advice = good ? std::string() : std::move(advice)});
    }
    void add_unknown(std::string item, std::string required, std::string found,
                     std::string advice) {
        items_.push_back({.subject = subject_,
                          .item = std::move(item),
                          .required = std::move(required),
                          .found = std::move(found),
                          .verdict = Verdict::kUnknown,
                          .advice = std::move(advice)});
    }
    [[nodiscard]] std::vector<GateItem> take() { return std::move(items_); }

private:
    std::string subject_;
    std::vector<GateItem> items_;
};

void check_native(const MachineFacts& facts, Checks& checks) {
    checks.add("system", "Linux", facts.system, facts.system == "Linux",
               "the native engine needs Linux");
    const bool avx2 = facts.machine == "x86_64" && facts.has_feature("avx2") &&
                      facts.has_feature("fma") && facts.has_feature("f16c");
    std::string_view best = "x86-64 without AVX2";
    if (facts.machine != "x86_64") best = facts.machine;
    if (avx2) best = "AVX2";
    if (avx2 && facts.has_feature("avx512f")) best = "AVX-512";
    if (avx2 && facts.has_feature("avx512_vnni")) best = "AVX-512 with VNNI";
    checks.add("CPU", "x86-64 with AVX2 or newer", std::string(best), avx2,
               "multiply-add is not fused on less; put another engine behind Sluice");
}

/// Of one vendor, named for people.
std::string names_of(const std::vector<Accelerator>& accelerators) {
    std::vector<std::string> names;
    for (const Accelerator& each : accelerators)
        names.push_back(fmt::format("{} ({})", each.name, each.architecture));
    return fmt::format("{}", fmt::join(names, ", "));
}

// DeepInfer 0.1.0: prerequisites of its README.
void check_deepinfer(const MachineFacts& facts, std::string_view model, Checks& checks) {
    checks.add("system", "Linux", facts.system, facts.system == "Linux", "DeepInfer needs Linux");
    // SM100 is one generation: B200 and GB200 are 10.0, B300 and GB300 10.3.
    const bool blackwell = std::ranges::any_of(facts.accelerators, [](const Accelerator& each) {
        return each.vendor == "nvidia" && each.architecture.starts_with("sm_10");
    });
    const bool ascend = std::ranges::any_of(facts.accelerators, [](const Accelerator& each) {
        return each.vendor == "ascend" && each.architecture.starts_with("950");
    });
    checks.add("accelerator", "NVIDIA SM100 or Ascend 950", names_of(facts.accelerators),
               blackwell || ascend, "no other accelerator is supported");
    if (ascend && !blackwell) {
        checks.add("CANN", ">= 9.2", facts.cann, at_least(facts.cann, "9.2"), "install CANN 9.2");
    } else {
        checks.add("CUDA", ">= 13", facts.cuda, at_least(facts.cuda, "13"),
                   "install the CUDA 13 toolkit; nvcc must be in PATH");
    }
    checks.add("GCC", ">= 13", facts.gcc, at_least(facts.gcc, "13"), "install GCC 13 or newer");
    checks.add("Python", "3.12", facts.python,
               facts.python == "3.12" || facts.python.starts_with("3.12."),
               "use an empty environment of Python 3.12");
    if (model.empty()) {
        checks.add_unknown("model", "DeepSeek-V4.1-Flash", "not told",
                           "name the model that will be served with --model");
    } else {
        checks.add("model", "DeepSeek-V4.1-Flash", std::string(model),
                   model.find("V4.1-Flash") != std::string_view::npos,
                   "DeepInfer 0.1.0 runs this model only");
    }
}

}  // namespace

std::string_view to_string(CompatEngine engine) { return entry(engine).name; }

std::optional<CompatEngine> parse_compat_engine(std::string_view name) {
    const auto* const found = std::ranges::find(kEngines, name, &EngineName::name);
    return found == kEngines.end() ? std::nullopt : std::optional(found->engine);
}

std::string_view version_path(CompatEngine engine) { return entry(engine).version_path; }

std::string version_of(CompatEngine engine, std::string_view body) {
    boost::json::error_code failure;
    const auto value =
        boost::json::parse(boost::json::string_view(body.data(), body.size()), failure);
    if (failure) return {};
    const std::string_view pointer = entry(engine).version_pointer;
    const auto* version =
        value.find_pointer(boost::json::string_view(pointer.data(), pointer.size()), failure);
    return version && version->is_string() ? std::string(version->get_string()) : std::string();
}

std::vector<GateItem> check_machine(CompatEngine engine, const MachineFacts& facts,
                                    std::string_view model) {
    Checks checks(engine);
    if (engine == CompatEngine::kNative) check_native(facts, checks);
    if (engine == CompatEngine::kDeepInfer) check_deepinfer(facts, model, checks);
    return checks.take();
}

std::vector<GateItem> check_server(CompatEngine engine, const ServerFacts& server,
                                   std::string_view model) {
    Checks checks(engine);
    checks.add("answers", "yes", server.error.empty() ? "yes" : server.error, server.error.empty(),
               "start the server, or correct its --url: " + server.url);
    if (!server.error.empty()) return checks.take();
    if (server.version.empty()) {
        checks.add_unknown("version", "any", "not told",
                           fmt::format("{}{} does not say it; record it by hand", server.url,
                                       version_path(engine)));
    } else {
        checks.add("version", "any", server.version, true, {});
    }
    const std::string listed = fmt::format("{}", fmt::join(server.models, ", "));
    const bool there = model.empty()
                           ? !server.models.empty()
                           : std::ranges::find(server.models, model) != server.models.end();
    checks.add("model", model.empty() ? "any" : std::string(model), listed, there,
               "the server lists the models it serves at /v1/models");
    return checks.take();
}

}  // namespace sluice::gates
