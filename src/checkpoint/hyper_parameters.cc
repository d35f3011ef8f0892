#include "checkpoint/hyper_parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/limits.h"
#include "checkpoint/printable.h"

namespace sluice::checkpoint {
namespace {

constexpr std::string_view kArchitecture = "deepseek2";

// Numbers in the file for `expert_gating_func`.
constexpr std::uint64_t kGatingSoftmax = 1;
constexpr std::uint64_t kGatingSigmoid = 2;

constexpr double kThetaMax = 1e12;
constexpr double kScaleMax = 1e3;
constexpr double kRopeFactorMax = 1e4;

enum class Need : std::uint8_t { kRequired, kOptional };

struct Range {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

std::string architecture_key(std::string_view name) {
    return fmt::format("{}.{}", kArchitecture, name);
}

/// Reads keys and keeps the first thing that is wrong; later reads then answer their fallback.
class KeyReader {
public:
    explicit KeyReader(const GgufFile& file) : file_(file) {}

    [[nodiscard]] bool failed() const { return error_.has_value(); }
    [[nodiscard]] const Error& error() const { return *error_; }

    void fail(std::string_view key, std::string message, ErrorCode code = ErrorCode::kInvalid) {
        if (!error_) error_ = Error(code, std::move(message), std::string(key));
    }

    /// What must hold between keys that are each fine.
    void require(bool condition, std::string_view key, std::string message) {
        if (!condition) fail(key, std::move(message));
    }

    std::uint64_t uint64(const std::string& key, Range range, Need need,
                         std::uint64_t fallback = 0) {
        if (!present(key, need)) return fallback;
        const std::optional<std::uint64_t> value = file_.find_uint(key);
        if (!value) {
            fail(key, "this must be a whole number that is not negative");
            return fallback;
        }
        if (*value < range.low || *value > range.high) {
            fail(
                key,
                fmt::format("this is {}, but must be from {} to {}", *value, range.low, range.high),
                ErrorCode::kOutOfRange);
            return fallback;
        }
        return *value;
    }

    std::uint32_t uint(const std::string& key, Range range, Need need, std::uint32_t fallback = 0) {
        return static_cast<std::uint32_t>(uint64(key, range, need, fallback));
    }

    /// Must lie in (above, at_most].
    float number(const std::string& key, double above, double at_most, Need need,
                 float fallback = 0.0F) {
        if (!present(key, need)) return fallback;
        const std::optional<double> value = file_.find_float(key);
        if (!value) {
            fail(key, "this must be a floating-point number");
            return fallback;
        }
        // Written so that NaN fails; a double too small for a float becomes zero and must fail too.
        const auto narrow = static_cast<float>(*value);
        if (!(*value > above && *value <= at_most && (above != 0.0 || narrow > 0.0F))) {
            fail(key,
                 fmt::format("this is {}, but must be above {} and at most {}", *value, above,
                             at_most),
                 ErrorCode::kOutOfRange);
            return fallback;
        }
        return narrow;
    }

    bool boolean(const std::string& key) {
        if (!present(key, Need::kOptional)) return false;
        const std::optional<bool> value = file_.find_bool(key);
        if (!value) fail(key, "this must be a bool");
        return value.value_or(false);
    }

    std::string string(const std::string& key, std::string fallback = {}) {
        if (!present(key, Need::kOptional)) return fallback;
        const std::optional<std::string_view> value = file_.find_string(key);
        if (!value) fail(key, "this must be a string");
        return value ? std::string(*value) : fallback;
    }

private:
    bool present(const std::string& key, Need need) {
        if (file_.contains(key)) return true;
        if (need == Need::kRequired) fail(key, "this key is missing", ErrorCode::kNotFound);
        return false;
    }

    const GgufFile& file_;
    std::optional<Error> error_;
};

std::uint32_t read_vocabulary(const GgufFile& file, KeyReader& keys) {
    const std::string size_key = architecture_key("vocab_size");
    const std::string tokens_key = "tokenizer.ggml.tokens";
    const auto tokens = file.find_strings(tokens_key);
    const std::uint64_t named = tokens ? tokens->size() : 0;
    if (!file.contains(size_key) && named > 0) {
        keys.require(
            named <= limits::kModelVocabulary, tokens_key,
            fmt::format("there are {} tokens, more than {}", named, limits::kModelVocabulary));
        return static_cast<std::uint32_t>(named);
    }
    const std::uint32_t size = keys.uint(size_key, {1, limits::kModelVocabulary}, Need::kRequired);
    keys.require(named <= size, size_key,
                 fmt::format("this is {}, but {} has {} entries", size, tokens_key, named));
    return size;
}

void read_sizes(const GgufFile& file, KeyReader& keys, HyperParameters& model) {
    model.vocabulary = read_vocabulary(file, keys);
    model.context_length = keys.uint64(architecture_key("context_length"),
                                       {1, limits::kModelContextTokens}, Need::kRequired);
    model.width =
        keys.uint(architecture_key("embedding_length"), {1, limits::kModelWidth}, Need::kRequired);
    model.heads = keys.uint(architecture_key("attention.head_count"), {1, limits::kModelHeads},
                            Need::kRequired);
    model.rms_eps = keys.number(architecture_key("attention.layer_norm_rms_epsilon"), 0.0, 1.0,
                                Need::kRequired);
}

void read_layers(KeyReader& keys, HyperParameters& model) {
    const std::string blocks_key = architecture_key("block_count");
    const std::string mtp_key = architecture_key("nextn_predict_layers");
    const std::string dense_key = architecture_key("leading_dense_block_count");
    const std::uint32_t blocks = keys.uint(blocks_key, {1, limits::kModelLayers}, Need::kRequired);
    model.mtp_layers = keys.uint(mtp_key, {0, limits::kModelLayers}, Need::kOptional);
    if (model.mtp_layers >= blocks) {
        keys.fail(mtp_key,
                  fmt::format("this is {}, but {} is {}: no layer of the model itself is left",
                              model.mtp_layers, blocks_key, blocks));
        return;
    }
    model.layers = blocks - model.mtp_layers;
    model.expert_count =
        keys.uint(architecture_key("expert_count"), {0, limits::kModelExperts}, Need::kOptional);
    model.dense_layers = model.expert_count == 0
                             ? model.layers
                             : keys.uint(dense_key, {0, model.layers}, Need::kOptional);
    if (model.dense_layers > 0) {
        model.dense_ff = keys.uint(architecture_key("feed_forward_length"),
                                   {1, limits::kModelFeedForward}, Need::kRequired);
    }
}

/// The file describes attention twice: as cached (key = kv_rank + rope, one KV head) and, under
/// `_mla`, as computed per head.
void read_attention(const GgufFile& file, KeyReader& keys, HyperParameters& model) {
    const std::string rank_key = architecture_key("attention.kv_lora_rank");
    const std::string rope_key = architecture_key("rope.dimension_count");
    const std::string key_mla_key = architecture_key("attention.key_length_mla");
    const std::string value_mla_key = architecture_key("attention.value_length_mla");
    const Range size{1, limits::kModelWidth};

    model.q_rank = keys.uint(architecture_key("attention.q_lora_rank"), {0, limits::kModelWidth},
                             Need::kOptional);
    model.kv_rank = keys.uint(rank_key, size, Need::kRequired);
    model.rope = keys.uint(rope_key, {2, limits::kModelWidth}, Need::kRequired);
    keys.require(model.rope % 2 == 0, rope_key,
                 fmt::format("this is {}, but elements are rotated in pairs", model.rope));
    if (!file.contains(key_mla_key)) {
        keys.fail(key_mla_key,
                  "this key is missing: files that keep MLA as one matrix (attn_kv_b) are not "
                  "supported, convert the checkpoint with a current tool",
                  ErrorCode::kUnsupported);
        return;
    }
    const std::uint32_t key_length = keys.uint(key_mla_key, size, Need::kRequired);
    model.value = keys.uint(value_mla_key, size, Need::kRequired);
    if (key_length <= model.rope) {
        keys.fail(key_mla_key, fmt::format("this is {}, but must be above {}, which is {}",
                                           key_length, rope_key, model.rope));
        return;
    }
    model.nope = key_length - model.rope;
}

void check_cache_form(KeyReader& keys, const HyperParameters& model) {
    if (keys.failed()) return;
    const auto expect = [&keys](std::string_view name, std::uint64_t expected,
                                std::string_view why) {
        const std::string key = architecture_key(name);
        const std::uint64_t value =
            keys.uint64(key, {0, 2 * limits::kModelWidth}, Need::kOptional, expected);
        keys.require(value == expected, key,
                     fmt::format("this is {}, but must be {} ({})", value, expected, why));
    };
    expect("attention.head_count_kv", 1, "MLA caches one latent for all heads");
    expect("attention.key_length", std::uint64_t{model.kv_rank} + model.rope,
           "kv_lora_rank + rope.dimension_count");
    expect("attention.value_length", model.kv_rank, "kv_lora_rank");
}

ExpertGating read_gating(KeyReader& keys) {
    const std::string key = architecture_key("expert_gating_func");
    const std::uint64_t number =
        keys.uint64(key, {kGatingSoftmax, kGatingSigmoid}, Need::kOptional, kGatingSoftmax);
    return number == kGatingSigmoid ? ExpertGating::kSigmoid : ExpertGating::kSoftmax;
}

void read_expert_groups(KeyReader& keys, HyperParameters& model) {
    const std::string count_key = architecture_key("expert_group_count");
    const std::string used_key = architecture_key("expert_group_used_count");
    model.expert_groups = keys.uint(count_key, {1, model.expert_count}, Need::kOptional, 1);
    model.expert_groups_used =
        keys.uint(used_key, {1, model.expert_groups}, Need::kOptional, model.expert_groups);
    if (model.expert_count % model.expert_groups != 0) {
        keys.fail(count_key, fmt::format("{} experts can't be split into {} equal groups",
                                         model.expert_count, model.expert_groups));
        return;
    }
    const std::uint64_t reachable =
        std::uint64_t{model.expert_count / model.expert_groups} * model.expert_groups_used;
    keys.require(model.experts_used <= reachable, used_key,
                 fmt::format("{} groups hold {} experts, but {} are used", model.expert_groups_used,
                             reachable, model.experts_used));
}

void read_experts(KeyReader& keys, HyperParameters& model) {
    if (model.expert_count == 0 || keys.failed()) return;
    model.experts_used =
        keys.uint(architecture_key("expert_used_count"), {1, model.expert_count}, Need::kRequired);
    model.shared_experts = keys.uint(architecture_key("expert_shared_count"),
                                     {0, limits::kModelExperts}, Need::kOptional);
    model.expert_ff = keys.uint(architecture_key("expert_feed_forward_length"),
                                {1, limits::kModelFeedForward}, Need::kRequired);
    keys.require(std::uint64_t{model.expert_ff} * model.shared_experts <= limits::kModelFeedForward,
                 architecture_key("expert_shared_count"),
                 fmt::format("{} shared experts of {} elements are more than {} elements",
                             model.shared_experts, model.expert_ff, limits::kModelFeedForward));
    model.expert_weights_scale = keys.number(architecture_key("expert_weights_scale"), 0.0,
                                             kScaleMax, Need::kOptional, 1.0F);
    model.expert_weights_norm = keys.boolean(architecture_key("expert_weights_norm"));
    model.gating = read_gating(keys);
    read_expert_groups(keys, model);
}

void read_rope(const GgufFile& file, KeyReader& keys, HyperParameters& model) {
    const std::string type_key = architecture_key("rope.scaling.type");
    const std::string factor_key = architecture_key("rope.scaling.factor");
    const std::string original_key = architecture_key("rope.scaling.original_context_length");
    model.rope_theta =
        keys.number(architecture_key("rope.freq_base"), 0.0, kThetaMax, Need::kOptional, 10'000.0F);
    const std::string type = keys.string(type_key, "none");
    if (type == "none") {
        keys.require(!file.contains(factor_key) || file.find_float(factor_key) == 1.0, factor_key,
                     fmt::format("there is a factor, but {} says no scaling", type_key));
        return;
    }
    if (type != "yarn") {
        keys.fail(type_key,
                  fmt::format("this is \"{}\"; only \"none\" and \"yarn\" are supported",
                              printable(type)),
                  ErrorCode::kUnsupported);
        return;
    }
    model.rope_scaling = RopeScaling::kYarn;
    model.rope_factor = keys.number(factor_key, 0.0, kRopeFactorMax, Need::kRequired);
    keys.require(model.rope_factor >= 1.0F, factor_key,
                 fmt::format("this is {}, but must be at least 1", model.rope_factor));
    model.rope_original_context =
        keys.uint64(original_key, {1, limits::kModelContextTokens}, Need::kRequired);
    model.yarn_log_multiplier = keys.number(architecture_key("rope.scaling.yarn_log_multiplier"),
                                            -kScaleMax, kScaleMax, Need::kOptional, 0.0F);
}

std::optional<TokenId> read_token(const GgufFile& file, KeyReader& keys, const std::string& key,
                                  std::uint32_t vocabulary) {
    if (!file.contains(key) || vocabulary == 0) return std::nullopt;
    return static_cast<TokenId>(keys.uint(key, {0, vocabulary - 1}, Need::kRequired));
}

void read_text_keys(const GgufFile& file, KeyReader& keys, HyperParameters& model) {
    model.name = keys.string("general.name", "unnamed");
    model.dialect = keys.string("sluice.dialect");
    model.tokenizer_model = keys.string("tokenizer.ggml.model");
    model.tokenizer_pre = keys.string("tokenizer.ggml.pre");
    model.bos = read_token(file, keys, "tokenizer.ggml.bos_token_id", model.vocabulary);
    model.eos = read_token(file, keys, "tokenizer.ggml.eos_token_id", model.vocabulary);
    model.pad = read_token(file, keys, "tokenizer.ggml.padding_token_id", model.vocabulary);
}

}  // namespace

Result<HyperParameters> read_hyper_parameters(const GgufFile& file) {
    KeyReader keys(file);
    const std::string architecture = keys.string("general.architecture");
    if (!keys.failed() && architecture != kArchitecture) {
        keys.fail("general.architecture",
                  fmt::format("this is \"{}\"; only \"{}\" is supported", printable(architecture),
                              kArchitecture),
                  ErrorCode::kUnsupported);
    }
    HyperParameters model;
    if (!keys.failed()) {
        read_sizes(file, keys, model);
        read_layers(keys, model);
        read_attention(file, keys, model);
        check_cache_form(keys, model);
        read_experts(keys, model);
        read_rope(file, keys, model);
        read_text_keys(file, keys, model);
    }
    if (keys.failed()) return std::unexpected(keys.error());
    return model;
}

}  // namespace sluice::checkpoint
