#include "protocol/upstream_chunk.h"

#include <gtest/gtest.h>

namespace sluice::protocol {
namespace {

UpstreamChunk read(std::string_view json) {
    UpstreamChunk full = read_upstream_chunk(json, ChunkDetail::kContent);
    const UpstreamChunk facts = read_upstream_chunk(json, ChunkDetail::kFacts);
    // What is not asked for changes nothing of the rest.
    EXPECT_EQ(full.is_object, facts.is_object) << json;
    EXPECT_EQ(full.has_output, facts.has_output) << json;
    EXPECT_EQ(full.has_choices, facts.has_choices) << json;
    EXPECT_EQ(full.finish_reason, facts.finish_reason) << json;
    EXPECT_EQ(full.usage, facts.usage) << json;
    EXPECT_EQ(full.has_error, facts.has_error) << json;
    return full;
}

TEST(UpstreamChunkTest, ADeltaHasItsText) {
    const UpstreamChunk chunk = read(
        R"({"id":"x","choices":[{"index":0,"delta":{"content":"H\u00e9"},"finish_reason":null}],)"
        R"("usage":null,"system_fingerprint":"fp","model":"m"})");
    EXPECT_TRUE(chunk.is_object);
    EXPECT_TRUE(chunk.has_choices);
    EXPECT_TRUE(chunk.has_output);
    EXPECT_EQ(chunk.text, "H\xC3\xA9");
    EXPECT_TRUE(chunk.finish_reason.empty());
    EXPECT_FALSE(chunk.usage.has_value());
    EXPECT_EQ(chunk.system_fingerprint, "fp");
    EXPECT_EQ(chunk.model, "m");
}

TEST(UpstreamChunkTest, TheModelsNameIsFoundWhereItStands) {
    for (const std::string_view text :
         {R"({"model":"a\"b","x":1})", R"({ "x":{"model":"no"}, "model" : "a\"b" , "y":2})",
          R"({"model":"a\"b"})"}) {
        const BodySpan where = read(text).model_value;
        EXPECT_EQ(text.substr(where.begin, where.size), R"("a\"b")") << text;
        EXPECT_EQ(read(text).model, R"(a"b)");
    }
    EXPECT_TRUE(read(R"({"x":{"model":"no"}})").model_value.empty());
    EXPECT_TRUE(read(R"({"model":null})").model_value.empty());
}

TEST(UpstreamChunkTest, TheRoleAloneIsNoOutput) {
    EXPECT_FALSE(read(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})").has_output);
    EXPECT_FALSE(read(R"({"choices":[{"delta":{"content":null,"tool_calls":null}}]})").has_output);
    EXPECT_TRUE(read(R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})").has_output);
    EXPECT_TRUE(read(R"({"choices":[{"text":"a"}]})").has_output);
    EXPECT_TRUE(read(R"({"choices":[{"delta":{"tool_calls":[{}]}}]})").has_output);
}

TEST(UpstreamChunkTest, TheEndHasReasonAndUsage) {
    const UpstreamChunk chunk =
        read(R"({"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,)"
             R"("completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4},)"
             R"("completion_tokens_details":{"reasoning_tokens":2,"x":null},"total_tokens":12}})");
    EXPECT_EQ(chunk.finish_reason, "stop");
    EXPECT_EQ(chunk.usage, (UpstreamUsage{5, 7, 4, 2}));
    const UpstreamChunk usage = read(R"({"choices":[],"usage":{"prompt_tokens":1}})");
    EXPECT_FALSE(usage.has_choices);
    EXPECT_EQ(usage.usage->prompt_tokens, 1U);
}

TEST(UpstreamChunkTest, AWholeAnswerReadsLikeOneChunk) {
    const UpstreamChunk chunk = read(
        R"({"choices":[{"message":{"role":"assistant","content":null,"reasoning":"r",)"
        R"("tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},)"
        R"({"id":"b","function":{"name":"g","arguments":"{\"x\":1}"}}]},)"
        R"("finish_reason":"tool_calls"},{"message":{"content":"second choice"}}]})");
    EXPECT_EQ(chunk.reasoning, "r");
    EXPECT_TRUE(chunk.text.empty());
    ASSERT_EQ(chunk.tool_calls.size(), 2U);
    EXPECT_EQ(chunk.tool_calls[1].index, 1U);
    EXPECT_EQ(chunk.tool_calls[1].name, "g");
    EXPECT_EQ(chunk.tool_calls[1].arguments, R"({"x":1})");
    EXPECT_EQ(chunk.finish_reason, "tool_calls");
}

TEST(UpstreamChunkTest, ErrorsComeInSeveralShapes) {
    EXPECT_EQ(read(R"({"error":{"message":"no","code":500}})").error_message, "no");
    EXPECT_EQ(read(R"({"error":"no"})").error_message, "no");
    EXPECT_TRUE(read(R"({"error":{}})").has_error);
    EXPECT_FALSE(read(R"({"error":null,"choices":[]})").has_error);
}

TEST(UpstreamChunkTest, WhatIsNoObjectSaysNothing) {
    for (const char* json : {"", "[DONE]", "7", "{", R"({"choices":[{"delta":)", "[]",
                             R"({"usage":{"prompt_tokens":)", "\xff"}) {
        EXPECT_FALSE(read(json).is_object) << json;
    }
}

TEST(UpstreamChunkTest, WrongTypesAreAsGoodAsAbsent) {
    const UpstreamChunk chunk = read(
        R"({"choices":[3,{"delta":7,"finish_reason":{}},{"delta":{"content":[1],"tool_calls":{}}}],)"
        R"("usage":[],"model":{"a":1},"system_fingerprint":4})");
    EXPECT_TRUE(chunk.is_object);
    EXPECT_TRUE(chunk.has_choices);
    EXPECT_FALSE(chunk.has_output);
    EXPECT_FALSE(chunk.usage.has_value());
}

}  // namespace
}  // namespace sluice::protocol
