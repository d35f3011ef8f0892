// `sluice model info`: what a checkpoint says of itself, and what serving it costs.

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <optional>

#include "app/command.h"
#include "app/model_verbs.h"
#include "checkpoint/fingerprint.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/hyper_parameters.h"
#include "engine/engine.h"
#include "gateway/model_vocabulary.h"

namespace sluice::app {
namespace {

namespace json = boost::json;
using checkpoint::HyperParameters;

struct TypeTotal {
    std::uint64_t tensors = 0;
    std::uint64_t bytes = 0;
};

struct Info {
    std::string path;
    std::uint64_t file_bytes = 0;
    std::string architecture;
    std::string fingerprint;
    std::map<std::string, TypeTotal> tensors;  ///< By type.
    Result<HyperParameters> parameters = std::unexpected(Error::invalid(""));
    Result<text::Tokenizer> tokenizer = std::unexpected(Error::invalid(""));
    Result<engine::MemoryUse> memory = std::unexpected(Error::invalid(""));
};

Info gather(const std::filesystem::path& path, const checkpoint::GgufFile& file) {
    Info info{.path = path.string(),
              .file_bytes = file.bytes().size(),
              .architecture = std::string(file.find_string("general.architecture").value_or("")),
              .fingerprint = checkpoint::fingerprint(file),
              .tensors = {}};
    for (const checkpoint::TensorView& tensor : file.tensors()) {
        TypeTotal& total = info.tensors[checkpoint::tensor_type_name(tensor.raw_type)];
        ++total.tensors;
        total.bytes += tensor.data.size();
    }
    info.parameters = checkpoint::read_hyper_parameters(file);
    info.tokenizer = gateway::read_tokenizer(file);
    if (const auto model = engine::Model::outline(file)) {
        info.memory = engine::Engine::memory_use(
            *model, {.threads = engine::kAutoThreads, .speculation = engine::Speculation::kAuto});
    } else {
        info.memory = std::unexpected(model.error());
    }
    return info;
}

/// What one token of context keeps in the engine's pool.
std::uint64_t kv_bytes_per_token(const HyperParameters& parameters) {
    return std::uint64_t{parameters.layers} *
           (std::uint64_t{parameters.kv_rank} + parameters.rope) * sizeof(float);
}

json::value optional_token(const std::optional<TokenId>& token) {
    return token ? json::value(*token) : json::value(nullptr);
}

/// As few digits as name the float.
json::value shortest(float value) { return json::parse(fmt::format("{}", value)); }

json::object parameters_json(const HyperParameters& p) {
    return {{"vocabulary", p.vocabulary},
            {"width", p.width},
            {"layers", p.layers},
            {"mtp_layers", p.mtp_layers},
            {"dense_layers", p.dense_layers},
            {"dense_ff", p.dense_ff},
            {"heads", p.heads},
            {"q_rank", p.q_rank},
            {"kv_rank", p.kv_rank},
            {"nope", p.nope},
            {"rope", p.rope},
            {"value", p.value},
            {"expert_count", p.expert_count},
            {"experts_used", p.experts_used},
            {"shared_experts", p.shared_experts},
            {"expert_ff", p.expert_ff},
            {"expert_weights_scale", shortest(p.expert_weights_scale)},
            {"expert_weights_norm", p.expert_weights_norm},
            {"gating", p.gating == checkpoint::ExpertGating::kSigmoid ? "sigmoid" : "softmax"},
            {"expert_groups", p.expert_groups},
            {"expert_groups_used", p.expert_groups_used},
            {"rope_theta", shortest(p.rope_theta)},
            {"rope_scaling", p.rope_scaling == checkpoint::RopeScaling::kYarn ? "yarn" : "none"},
            {"rope_factor", shortest(p.rope_factor)},
            {"rope_original_context", p.rope_original_context},
            {"rms_eps", shortest(p.rms_eps)},
            {"bos", optional_token(p.bos)},
            {"eos", optional_token(p.eos)},
            {"pad", optional_token(p.pad)}};
}

json::object memory_json(const engine::MemoryUse& memory) {
    return {{"embedding_mapped", memory.embedding},
            {"packed_weights", memory.weights},
            {"kv_pool", memory.kv_pool},
            {"activations", memory.activations},
            {"total", memory.total()}};
}

json::object to_json(const Info& info) {
    json::array tensors;
    for (const auto& [type, total] : info.tensors) {
        tensors.push_back({{"type", type}, {"tensors", total.tensors}, {"bytes", total.bytes}});
    }
    json::object object{{"file", info.path},
                        {"file_bytes", info.file_bytes},
                        {"architecture", info.architecture},
                        {"fingerprint", info.fingerprint},
                        {"tensors", tensors},
                        {"name", nullptr},
                        {"dialect", nullptr},
                        {"context_tokens", nullptr},
                        {"kv_bytes_per_token", nullptr},
                        {"hyper_parameters", nullptr},
                        {"tokenizer_digest", nullptr},
                        {"packed_weight_bytes", nullptr},
                        {"memory", nullptr},
                        {"unsupported", nullptr}};
    if (info.parameters) {
        object["name"] = info.parameters->name;
        object["dialect"] = info.parameters->dialect;
        object["context_tokens"] = info.parameters->context_length;
        object["kv_bytes_per_token"] = kv_bytes_per_token(*info.parameters);
        object["hyper_parameters"] = parameters_json(*info.parameters);
    }
    if (info.memory) {
        object["packed_weight_bytes"] = info.memory->weights;
        object["memory"] = memory_json(*info.memory);
    } else {
        object["unsupported"] = info.memory.error().to_string();
    }
    if (info.tokenizer) {
        object["tokenizer_digest"] = info.tokenizer->digest();
    } else {
        object["unsupported"] = info.tokenizer.error().to_string();
    }
    return object;
}

std::string row(std::string_view name, std::string_view value) {
    return fmt::format("{:<20} {}\n", name, value);
}

std::string parameters_text(const HyperParameters& p) {
    std::string text = row("name", p.name);
    text += row("dialect", p.dialect.empty() ? "none named" : p.dialect);
    text += row("context", fmt::format("{} tokens", p.context_length));
    text += row("KV cache", fmt::format("{} bytes a token", kv_bytes_per_token(p)));
    text += row("vocabulary", fmt::format("{}", p.vocabulary));
    text += row("layers", fmt::format("{} ({} dense) and {} MTP, width {}", p.layers,
                                      std::min(p.dense_layers, p.layers), p.mtp_layers, p.width));
    text +=
        row("attention", fmt::format("{} heads; q rank {}, kv rank {}, nope {}, rope {}, value {}",
                                     p.heads, p.q_rank, p.kv_rank, p.nope, p.rope, p.value));
    text += row("feed-forward",
                fmt::format("dense {}; {} experts of {}, {} used, {} shared", p.dense_ff,
                            p.expert_count, p.expert_ff, p.experts_used, p.shared_experts));
    text += row("rope", fmt::format("theta {}, {}", p.rope_theta,
                                    p.rope_scaling == checkpoint::RopeScaling::kYarn
                                        ? fmt::format("YaRN times {}", p.rope_factor)
                                        : "unscaled"));
    return text;
}

std::string to_text(const Info& info) {
    std::string text = row("file", info.path);
    text += row("size", fmt::format("{} bytes", info.file_bytes));
    text += row("architecture", info.architecture);
    text += row("fingerprint", info.fingerprint);
    text += info.parameters ? parameters_text(*info.parameters) : "";
    text += row("tokenizer",
                info.tokenizer ? info.tokenizer->digest() : info.tokenizer.error().to_string());
    for (const auto& [type, total] : info.tensors) {
        text += row("tensors " + type, fmt::format("{}, {} bytes", total.tensors, total.bytes));
    }
    if (!info.memory) return text + row("memory", "not served: " + info.memory.error().to_string());
    const engine::MemoryUse& memory = *info.memory;
    text += row("packed weights", fmt::format("{} bytes", memory.weights));
    text += row("embedding", fmt::format("{} bytes of the file, mapped", memory.embedding));
    text += row("KV pool", fmt::format("{} bytes at the default size", memory.kv_pool));
    text += row("activations", fmt::format("{} bytes in the largest step", memory.activations));
    text += row("memory at most", fmt::format("{} bytes", memory.total()));
    return text;
}

}  // namespace

int model_info(const ModelInfoOptions& options) {
    const auto path = gateway::find_model(options.model);
    if (!path) return fail(kCannotStart, path.error());
    const auto file = checkpoint::GgufFile::open(*path);
    if (!file) return fail(kCannotStart, file.error());
    const Info info = gather(*path, *file);
    print(options.json ? json::serialize(to_json(info)) + "\n" : to_text(info));
    return kDone;
}

}  // namespace sluice::app
