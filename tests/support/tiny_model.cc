#include "tests/support/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

#include "checkpoint/gguf_types.h"
#include "tests/support/half.h"

namespace sluice::test {
namespace {

using checkpoint::DataType;
using checkpoint::HyperParameters;

std::vector<std::byte> as_half(std::span<const float> values) {
    ByteWriter bytes;
    for (const float value : values) bytes.put(float_to_half(value));
    return bytes.bytes();
}

std::vector<std::byte> as_q8_0(std::span<const float> values) {
    ByteWriter bytes;
    for (; !values.empty(); values = values.subspan(32)) {
        const auto block = values.first(32);
        float largest = 0.0F;
        for (const float value : block) largest = std::max(largest, std::fabs(value));
        const std::uint16_t scale = float_to_half(largest / 127.0F);
        const float step = half_to_float(scale);
        bytes.put(scale);
        for (const float value : block) {
            const float rounded = step == 0.0F ? 0.0F : std::nearbyint(value / step);
            bytes.put(static_cast<std::int8_t>(std::clamp(rounded, -127.0F, 127.0F)));
        }
    }
    return bytes.bytes();
}

class ModelWriter {
public:
    ModelWriter(const HyperParameters& model, DataType type, std::uint64_t seed)
        : model_(model), type_(type), random_(seed), builder_(with_metadata(model)) {}

    std::vector<std::byte> write() {
        matrix("token_embd", {model_.width, model_.vocabulary});
        norm("output_norm", model_.width);
        matrix("output", {model_.width, model_.vocabulary});
        for (std::uint32_t layer = 0; layer < model_.layers + model_.mtp_layers; ++layer) {
            prefix_ = "blk." + std::to_string(layer) + ".";
            write_attention();
            model_.is_moe_layer(layer) ? write_experts() : write_dense();
            if (layer >= model_.layers) write_mtp();
        }
        return builder_.build();
    }

private:
    using Shape = std::vector<std::uint64_t>;

    void write_attention() {
        const std::uint32_t queries = model_.heads * model_.key_length();
        norm("attn_norm", model_.width);
        norm("ffn_norm", model_.width);
        if (model_.q_rank > 0) {
            matrix("attn_q_a", {model_.width, model_.q_rank});
            norm("attn_q_a_norm", model_.q_rank);
            matrix("attn_q_b", {model_.q_rank, queries});
        } else {
            matrix("attn_q", {model_.width, queries});
        }
        matrix("attn_kv_a_mqa", {model_.width, model_.kv_rank + model_.rope});
        norm("attn_kv_a_norm", model_.kv_rank);
        matrix("attn_k_b", {model_.nope, model_.kv_rank, model_.heads});
        matrix("attn_v_b", {model_.kv_rank, model_.value, model_.heads});
        matrix("attn_output", {std::uint64_t{model_.heads} * model_.value, model_.width});
    }

    void write_dense() { feed_forward("", model_.dense_ff); }

    void write_experts() {
        put("ffn_gate_inp.weight", DataType::kF32, {model_.width, model_.expert_count},
            uniform(model_.width * model_.expert_count, std::sqrt(3.0F / model_.width)));
        if (model_.gating == checkpoint::ExpertGating::kSigmoid) {
            put("exp_probs_b.bias", DataType::kF32, {model_.expert_count},
                uniform(model_.expert_count, 0.05F));
        }
        for (const char* part : {"ffn_gate_exps", "ffn_up_exps"}) {
            matrix(part, {model_.width, model_.expert_ff, model_.expert_count});
        }
        matrix("ffn_down_exps", {model_.expert_ff, model_.width, model_.expert_count});
        if (model_.shared_experts > 0) {
            feed_forward("_shexp", model_.expert_ff * model_.shared_experts);
        }
    }

    void feed_forward(const std::string& suffix, std::uint64_t size) {
        matrix("ffn_gate" + suffix, {model_.width, size});
        matrix("ffn_up" + suffix, {model_.width, size});
        matrix("ffn_down" + suffix, {size, model_.width});
    }

    void write_mtp() {
        matrix("nextn.eh_proj", {std::uint64_t{2} * model_.width, model_.width});
        for (const char* part : {"nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"}) {
            norm(part, model_.width);
        }
    }

    /// Scaled so that the variance of an output equals that of an input.
    void matrix(const std::string& name, Shape shape) {
        std::uint64_t elements = 1;
        for (const std::uint64_t size : shape) elements *= size;
        const float bound = std::sqrt(3.0F / static_cast<float>(shape.front()));
        put(name + ".weight", type_, std::move(shape), uniform(elements, bound));
    }

    void norm(const std::string& name, std::uint32_t size) {
        std::vector<float> weights = uniform(size, 0.1F);
        for (float& weight : weights) weight += 1.0F;
        put(name + ".weight", DataType::kF32, {size}, weights);
    }

    void put(const std::string& name, DataType type, Shape shape, std::span<const float> values) {
        const std::string full = prefix_ + name;
        switch (type) {
            case DataType::kF32: builder_.add_f32_tensor(full, std::move(shape), values); return;
            case DataType::kF16:
                builder_.add_tensor(full, checkpoint::kTensorF16, std::move(shape),
                                    as_half(values));
                return;
            case DataType::kQ8_0:
                if (shape.front() % 32 != 0)
                    throw std::invalid_argument(full + ": row of " + std::to_string(shape.front()));
                builder_.add_tensor(full, checkpoint::kTensorQ8_0, std::move(shape),
                                    as_q8_0(values));
                return;
            default: throw std::invalid_argument("weights are written as f32, f16 or q8_0");
        }
    }

    /// Standard distributions differ between libraries; the generator itself doesn't.
    std::vector<float> uniform(std::uint64_t count, float bound) {
        std::vector<float> values(count);
        for (float& value : values) {
            const auto unit = static_cast<float>(random_() >> 40) * 0x1p-23F;  // [0, 2)
            value = (unit - 1.0F) * bound;
        }
        return values;
    }

    HyperParameters model_;
    DataType type_;
    std::mt19937_64 random_;
    GgufBuilder builder_;
    std::string prefix_;
};

void add_experts(GgufBuilder& builder, const HyperParameters& model) {
    const std::string prefix = "deepseek2.";
    builder.add_u32(prefix + "leading_dense_block_count", model.dense_layers)
        .add_u32(prefix + "expert_count", model.expert_count)
        .add_u32(prefix + "expert_used_count", model.experts_used)
        .add_u32(prefix + "expert_shared_count", model.shared_experts)
        .add_u32(prefix + "expert_feed_forward_length", model.expert_ff)
        .add_f32(prefix + "expert_weights_scale", model.expert_weights_scale)
        .add_bool(prefix + "expert_weights_norm", model.expert_weights_norm)
        .add_u32(prefix + "expert_gating_func",
                 model.gating == checkpoint::ExpertGating::kSigmoid ? 2 : 1);
    if (model.expert_groups > 1) {
        builder.add_u32(prefix + "expert_group_count", model.expert_groups)
            .add_u32(prefix + "expert_group_used_count", model.expert_groups_used);
    }
}

void add_yarn(GgufBuilder& builder, const HyperParameters& model) {
    const std::string prefix = "deepseek2.rope.scaling.";
    builder.add_string(prefix + "type", "yarn")
        .add_f32(prefix + "factor", model.rope_factor)
        .add_u32(prefix + "original_context_length",
                 static_cast<std::uint32_t>(model.rope_original_context))
        .add_f32(prefix + "yarn_log_multiplier", model.yarn_log_multiplier);
}

void add_tokenizer(GgufBuilder& builder, const HyperParameters& model) {
    std::vector<std::string> tokens;
    for (std::uint32_t i = 0; i < model.vocabulary; ++i) tokens.push_back("t" + std::to_string(i));
    builder.add_string("tokenizer.ggml.model", model.tokenizer_model)
        .add_string("tokenizer.ggml.pre", model.tokenizer_pre)
        .add_strings("tokenizer.ggml.tokens", tokens)
        .add_i32s("tokenizer.ggml.token_type", std::vector<std::int32_t>(model.vocabulary, 1));
    const auto add_id = [&builder](const char* key, std::optional<TokenId> id) {
        if (id) builder.add_u32(key, static_cast<std::uint32_t>(*id));
    };
    add_id("tokenizer.ggml.bos_token_id", model.bos);
    add_id("tokenizer.ggml.eos_token_id", model.eos);
    add_id("tokenizer.ggml.padding_token_id", model.pad);
}

}  // namespace

HyperParameters tiny_hyper_parameters() {
    HyperParameters model;
    model.name = "Tiny";
    model.vocabulary = 64;
    model.context_length = 256;
    model.width = 32;
    model.layers = 2;
    model.dense_layers = 1;
    model.dense_ff = 64;
    model.heads = 2;
    model.q_rank = 32;
    model.kv_rank = 32;
    model.nope = 32;
    model.rope = 16;
    model.value = 32;
    model.expert_count = 4;
    model.experts_used = 2;
    model.shared_experts = 1;
    model.expert_ff = 32;
    model.expert_weights_norm = true;
    model.gating = checkpoint::ExpertGating::kSigmoid;
    model.rms_eps = 1e-6F;
    model.bos = 0;
    model.eos = 1;
    model.pad = 2;
    model.dialect = "deepseek-v4.1";
    model.tokenizer_model = "gpt2";
    model.tokenizer_pre = "deepseek-v3";
    return model;
}

GgufBuilder with_metadata(const HyperParameters& model) {
    const std::string prefix = "deepseek2.";
    GgufBuilder builder;
    builder.add_string("general.architecture", "deepseek2")
        .add_string("general.name", model.name)
        .add_u32(prefix + "vocab_size", model.vocabulary)
        .add_u32(prefix + "context_length", static_cast<std::uint32_t>(model.context_length))
        .add_u32(prefix + "embedding_length", model.width)
        .add_u32(prefix + "block_count", model.layers + model.mtp_layers)
        .add_u32(prefix + "nextn_predict_layers", model.mtp_layers)
        .add_u32(prefix + "feed_forward_length", model.dense_ff)
        .add_u32(prefix + "attention.head_count", model.heads)
        .add_u32(prefix + "attention.head_count_kv", 1)
        .add_f32(prefix + "rope.freq_base", model.rope_theta)
        .add_f32(prefix + "attention.layer_norm_rms_epsilon", model.rms_eps)
        .add_u32(prefix + "attention.kv_lora_rank", model.kv_rank)
        .add_u32(prefix + "attention.key_length", model.kv_rank + model.rope)
        .add_u32(prefix + "attention.value_length", model.kv_rank)
        .add_u32(prefix + "attention.key_length_mla", model.key_length())
        .add_u32(prefix + "attention.value_length_mla", model.value)
        .add_u32(prefix + "rope.dimension_count", model.rope);
    if (model.q_rank > 0) builder.add_u32(prefix + "attention.q_lora_rank", model.q_rank);
    if (model.expert_count > 0) add_experts(builder, model);
    if (model.rope_scaling == checkpoint::RopeScaling::kYarn) add_yarn(builder, model);
    add_tokenizer(builder, model);
    builder.add_string("sluice.dialect", model.dialect);
    return builder;
}

std::vector<std::byte> random_model(const HyperParameters& model, DataType type,
                                    std::uint64_t seed) {
    return ModelWriter(model, type, seed).write();
}

}  // namespace sluice::test
