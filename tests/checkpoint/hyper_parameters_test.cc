#include "checkpoint/hyper_parameters.h"

#include <limits>

#include "tests/support/gguf_builder.h"
#include "tests/support/tiny_model.h"

namespace sluice::checkpoint {
namespace {

using test::GgufBuilder;

Result<HyperParameters> read(const GgufBuilder& builder) {
    const std::vector<std::byte> bytes = builder.build();
    const Result<GgufFile> file = GgufFile::parse(bytes);
    if (!file) return std::unexpected(file.error());
    return read_hyper_parameters(*file);
}

GgufBuilder tiny() { return test::with_metadata(test::tiny_hyper_parameters()); }

/// The tiny model with one key replaced by what `add` writes.
template <class Add>
Result<HyperParameters> read_with(const std::string& key, Add add) {
    GgufBuilder builder = tiny();
    builder.remove(key);
    add(builder);
    return read(builder);
}

/// Refused, with the key as place and `text` in the message.
void expect_refused(const Result<HyperParameters>& result, std::string_view key,
                    std::string_view text) {
    ASSERT_FALSE(result.has_value()) << key;
    EXPECT_EQ(result.error().place(), key);
    EXPECT_NE(result.error().message().find(text), std::string::npos) << result.error().to_string();
}

void expect_u32_refused(const std::string& key, std::uint32_t value) {
    const auto result = read_with(key, [&](GgufBuilder& b) { b.add_u32(key, value); });
    expect_refused(result, key, std::to_string(value));
}

TEST(HyperParametersTest, KrillsFilesSayWhatItsCardSays) {
    for (const char* name : {"krill-f16.gguf", "krill-q8_0.gguf"}) {
        const Result<GgufFile> file = GgufFile::open(test::krill_file(name));
        ASSERT_TRUE(file.has_value()) << file.error().to_string();
        const Result<HyperParameters> model = read_hyper_parameters(*file);
        ASSERT_TRUE(model.has_value()) << model.error().to_string();

        HyperParameters expected;
        expected.name = "Krill";
        expected.vocabulary = 4096;
        expected.context_length = 131'072;
        expected.width = 256;
        expected.layers = 6;
        expected.mtp_layers = 1;
        expected.dense_layers = 1;
        expected.dense_ff = 640;
        expected.heads = 4;
        expected.q_rank = 128;
        expected.kv_rank = 64;
        expected.nope = 32;
        expected.rope = 32;
        expected.value = 32;
        expected.expert_count = 8;
        expected.experts_used = 2;
        expected.shared_experts = 1;
        expected.expert_ff = 192;
        expected.expert_weights_scale = 1.0F;
        expected.expert_weights_norm = true;
        expected.gating = ExpertGating::kSigmoid;
        expected.rope_theta = 10'000.0F;
        expected.rms_eps = 1e-6F;
        expected.bos = 0;
        expected.eos = 1;
        expected.pad = 2;
        expected.dialect = "deepseek-v4.1";
        expected.tokenizer_model = "gpt2";
        expected.tokenizer_pre = "deepseek-v3";
        EXPECT_EQ(*model, expected) << name;
        EXPECT_EQ(model->key_length(), 64U);
        EXPECT_FALSE(model->is_moe_layer(0));
        EXPECT_TRUE(model->is_moe_layer(6));
    }
}

TEST(HyperParametersTest, WhatIsWrittenIsRead) {
    HyperParameters model = test::tiny_hyper_parameters();
    EXPECT_EQ(read(test::with_metadata(model)), model);

    model.q_rank = 0;
    model.mtp_layers = 1;
    model.gating = ExpertGating::kSoftmax;
    model.expert_groups = 2;
    model.expert_groups_used = 1;
    model.expert_weights_scale = 2.5F;
    model.rope_scaling = RopeScaling::kYarn;
    model.rope_factor = 40.0F;
    model.rope_original_context = 4096;
    model.yarn_log_multiplier = 0.1F;
    model.bos.reset();
    EXPECT_EQ(read(test::with_metadata(model)), model);
}

TEST(HyperParametersTest, AModelWithoutExpertsIsAllDense) {
    HyperParameters model = test::tiny_hyper_parameters();
    model.expert_count = model.experts_used = model.shared_experts = model.expert_ff = 0;
    model.expert_weights_norm = false;
    model.gating = ExpertGating::kSoftmax;
    model.dense_layers = model.layers;
    EXPECT_EQ(read(test::with_metadata(model)), model);
    EXPECT_FALSE(model.is_moe_layer(model.layers));
}

TEST(HyperParametersTest, EveryNeededKeyIsMissedByName) {
    for (const char* name :
         {"context_length", "embedding_length", "block_count", "feed_forward_length",
          "attention.head_count", "attention.layer_norm_rms_epsilon", "attention.kv_lora_rank",
          "attention.key_length_mla", "attention.value_length_mla", "rope.dimension_count",
          "expert_used_count", "expert_feed_forward_length"}) {
        const std::string key = std::string("deepseek2.") + name;
        expect_refused(read_with(key, [](GgufBuilder&) {}), key, "missing");
    }
}

TEST(HyperParametersTest, TheVocabularyIsCountedWhereItIsNotNamed) {
    const auto counted = read_with("deepseek2.vocab_size", [](GgufBuilder&) {});
    ASSERT_TRUE(counted.has_value());
    EXPECT_EQ(counted->vocabulary, 64U);
    const auto neither = read_with("deepseek2.vocab_size",
                                   [](GgufBuilder& b) { b.remove("tokenizer.ggml.tokens"); });
    expect_refused(neither, "deepseek2.vocab_size", "missing");
    expect_u32_refused("deepseek2.vocab_size", 63);
}

TEST(HyperParametersTest, AnotherArchitectureIsUnsupported) {
    for (const char* name : {"llama", ""}) {
        const auto result = read_with("general.architecture", [name](GgufBuilder& b) {
            b.add_string("general.architecture", name);
        });
        expect_refused(result, "general.architecture", std::string("\"") + name + "\"");
        EXPECT_EQ(result.error().code(), ErrorCode::kUnsupported);
    }
    expect_refused(read(GgufBuilder()), "general.architecture", "\"\"");
}

TEST(HyperParametersTest, ZeroAndAbsurdSizesAreRefused) {
    for (const char* name :
         {"vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length",
          "attention.head_count", "attention.kv_lora_rank", "attention.key_length_mla",
          "attention.value_length_mla", "rope.dimension_count", "expert_used_count",
          "expert_feed_forward_length"}) {
        expect_u32_refused(std::string("deepseek2.") + name, 0);
        expect_u32_refused(std::string("deepseek2.") + name, 0xFFFFFFFF);
    }
    expect_u32_refused("deepseek2.expert_count", 0xFFFFFFFF);
    expect_u32_refused("deepseek2.expert_shared_count", 0xFFFFFFFF);
    expect_u32_refused("deepseek2.attention.q_lora_rank", 0xFFFFFFFF);
}

TEST(HyperParametersTest, KeysThatContradictEachOtherAreRefused) {
    expect_u32_refused("deepseek2.nextn_predict_layers", 2);  // Of two layers.
    expect_u32_refused("deepseek2.leading_dense_block_count", 3);
    expect_u32_refused("deepseek2.expert_used_count", 5);      // Of four.
    expect_u32_refused("deepseek2.attention.key_length", 47);  // 32 + 16.
    expect_u32_refused("deepseek2.attention.value_length", 31);
    expect_u32_refused("deepseek2.attention.head_count_kv", 2);
    expect_u32_refused("deepseek2.attention.key_length_mla", 16);  // Nothing but rope.
    expect_u32_refused("deepseek2.rope.dimension_count", 15);
    expect_u32_refused("deepseek2.expert_gating_func", 3);
    expect_u32_refused("tokenizer.ggml.eos_token_id", 64);
}

TEST(HyperParametersTest, ExpertGroupsMustHoldTheExpertsUsed) {
    const auto grouped = [](std::uint32_t groups, std::uint32_t used) {
        return read(tiny()
                        .add_u32("deepseek2.expert_group_count", groups)
                        .add_u32("deepseek2.expert_group_used_count", used));
    };
    EXPECT_TRUE(grouped(2, 1).has_value());
    expect_refused(grouped(3, 1), "deepseek2.expert_group_count", "3 equal groups");
    expect_refused(grouped(4, 1), "deepseek2.expert_group_used_count", "hold 1 experts");
    expect_refused(grouped(2, 3), "deepseek2.expert_group_used_count", "3");
    expect_refused(grouped(0, 1), "deepseek2.expert_group_count", "0");
}

TEST(HyperParametersTest, NumbersThatAreNoneAreRefused) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinite = std::numeric_limits<float>::infinity();
    for (const char* name :
         {"attention.layer_norm_rms_epsilon", "rope.freq_base", "expert_weights_scale"}) {
        const std::string key = std::string("deepseek2.") + name;
        for (const float value : {nan, infinite, 0.0F, -1.0F}) {
            const auto result = read_with(key, [&](GgufBuilder& b) { b.add_f32(key, value); });
            expect_refused(result, key, "must be above");
        }
    }
}

TEST(HyperParametersTest, AKeyOfAnotherKindIsRefused) {
    const auto as_string = [](const std::string& key) {
        return read_with(key, [&key](GgufBuilder& b) { b.add_string(key, "7"); });
    };
    expect_refused(as_string("deepseek2.block_count"), "deepseek2.block_count", "whole number");
    expect_refused(as_string("deepseek2.rope.freq_base"), "deepseek2.rope.freq_base",
                   "floating-point");
    expect_refused(as_string("deepseek2.expert_weights_norm"), "deepseek2.expert_weights_norm",
                   "bool");
    const auto name =
        read_with("general.name", [](GgufBuilder& b) { b.add_u32("general.name", 1); });
    expect_refused(name, "general.name", "string");
}

TEST(HyperParametersTest, RopeScalingIsNoneOrYarn) {
    const std::string prefix = "deepseek2.rope.scaling.";
    expect_refused(read(tiny().add_string(prefix + "type", "linear")), prefix + "type", "linear");
    expect_refused(read(tiny().add_f32(prefix + "factor", 4.0F)), prefix + "factor", "no scaling");
    expect_refused(read(tiny().add_string(prefix + "type", "yarn")), prefix + "factor", "missing");
    const auto yarn = [&prefix](float factor) {
        return tiny().add_string(prefix + "type", "yarn").add_f32(prefix + "factor", factor);
    };
    expect_refused(read(yarn(4.0F)), prefix + "original_context_length", "missing");
    expect_refused(read(yarn(0.5F)), prefix + "factor", "at least 1");
}

}  // namespace
}  // namespace sluice::checkpoint
