#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/api_target.h"
#include "app/command.h"
#include "app/gate_result.h"
#include "app/http_call.h"
#include "app/text_file.h"
#include "base/version.h"
#include "gates/compat.h"

namespace sluice::app {
namespace {

using gates::CompatEngine;

struct Options {
    std::string engine = "native";
    std::string model;
    std::string url;
    std::string api_key_env;
    std::string manifest;
    bool json = false;
};

bool runs_here(CompatEngine engine) {
    return engine == CompatEngine::kNative || engine == CompatEngine::kDeepInfer;
}

/// What the server at --url says of itself.
Result<gates::ServerFacts> ask_server(CompatEngine engine, const Options& options) {
    const auto target = api_target(
        {.url = options.url, .model = options.model, .api_key_env = options.api_key_env});
    if (!target) return std::unexpected(target.error());
    net::EventLoop loop;
    net::HttpClient client(loop);
    gates::ServerFacts facts{.url = target->url};
    auto models = list_models(loop, client, *target);
    if (!models) {
        facts.error = models.error().message();
        return facts;
    }
    facts.models = std::move(*models);
    // The version is told at the root, beside the API.
    std::string root = target->url;
    if (root.ends_with("/v1")) root.resize(root.size() - 3);
    net::HttpHeaders headers;
    if (!target->api_key.empty()) headers.add("Authorization", "Bearer " + target->api_key);
    const auto answer =
        fetch(loop, client,
              {.url = root + std::string(version_path(engine)), .headers = std::move(headers)});
    if (answer && answer->status == 200) facts.version = version_of(engine, answer->body);
    return facts;
}

/// All that was found, to be kept beside the deployment.
std::string manifest(const gates::GateReport& report, const gates::MachineFacts& machine) {
    return fmt::format("{{\"time\":\"{}\",\"sluice\":\"{} {}\",\"machine\":{},\"gate\":{}}}\n",
                       utc_now(), version().version, version().commit, gates::to_json(machine),
                       gates::to_json(report));
}

int run(const Options& options) {
    const auto engine = gates::parse_compat_engine(options.engine);
    if (!engine) return fail(kWrongUse, Error::invalid("is no engine", "--engine"));
    if (!runs_here(*engine) && options.url.empty()) {
        return fail(kWrongUse,
                    Error::invalid(fmt::format("must name the running {} server", options.engine),
                                   "--url"));
    }
    const gates::MachineFacts machine = gates::collect_machine_facts();
    gates::GateReport report{.gate = "compat", .items = {}};
    if (runs_here(*engine)) {
        report.items = check_machine(*engine, machine, options.model);
    } else {
        const auto server = ask_server(*engine, options);
        if (!server) return fail(kWrongUse, server.error());
        report.items = check_server(*engine, *server, options.model);
    }
    if (!options.manifest.empty()) {
        if (const auto done = write_text_file(options.manifest, manifest(report, machine)); !done)
            return fail(kCannotStart, done.error());
    }
    return print_report(report, options.json);
}

}  // namespace

Run define_gate_compat(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("--engine", options->engine, "native, deepinfer, vllm, sglang or llama.cpp")
        ->check(CLI::IsMember({"native", "deepinfer", "vllm", "sglang", "llama.cpp"}))
        ->type_name("NAME")
        ->capture_default_str();
    verb.add_option("--model", options->model, "The model that will be served")->type_name("NAME");
    verb.add_option("--url", options->url, "Of a running vLLM, SGLang or llama.cpp server")
        ->type_name("URL");
    verb.add_option("--api-key-env", options->api_key_env, "Environment variable with its API key")
        ->type_name("NAME");
    verb.add_option("--manifest", options->manifest, "Record what was found in a file, as JSON")
        ->type_name("FILE");
    verb.add_flag("--json", options->json, "Print one JSON object");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
