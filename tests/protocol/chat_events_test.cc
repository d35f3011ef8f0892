#include "protocol/chat_events.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <cmath>

#include "protocol/completion_events.h"
#include "protocol/json_writer.h"

namespace sluice::protocol {
namespace {

namespace json = boost::json;

const ResponseInfo kInfo{
    .id = "chatcmpl-1", .created = 17, .model = "kri\"ll", .system_fingerprint = "fp"};

OutputEvent content(std::string text, std::uint64_t begin = 0) {
    const std::uint64_t end = begin + text.size();
    return {OutputKind::kContent, std::move(text), begin, end};
}

OutputEvent reasoning(std::string text) { return {OutputKind::kReasoning, std::move(text), 0, 1}; }

PositionLogprobs position(std::string bytes, float logprob) {
    return {{bytes, logprob}, {{bytes, logprob}}};
}

/// Every value of the chunk, so that no field can come or go unseen.
void expect_json(const std::string& text, const std::string& wanted) {
    EXPECT_EQ(json::parse(text), json::parse(wanted)) << text;
}

std::string chunk(const std::string& rest) {
    return R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":17,"model":"kri\"ll",
               "system_fingerprint":"fp",)" +
           rest + "}";
}

TEST(ChatStreamTest, TheRoleComesFirstWithEmptyContent) {
    expect_json(ChatStream(kInfo).role(), chunk(R"("choices":[{"index":0,
        "delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}])"));
}

TEST(ChatStreamTest, ADeltaHoldsOneKindOfTextAndNoNull) {
    const ChatStream stream(kInfo);
    expect_json(stream.delta(content("a\n\"é\"\x01")), chunk(R"("choices":[{"index":0,
        "delta":{"content":"a\n\"é\"\u0001"},"logprobs":null,"finish_reason":null}])"));
    expect_json(stream.delta(reasoning("r")), chunk(R"("choices":[{"index":0,
        "delta":{"reasoning_content":"r"},"logprobs":null,"finish_reason":null}])"));
}

TEST(ChatStreamTest, TheFinishReasonHasAChunkOfItsOwn) {
    expect_json(ChatStream(kInfo).finish(FinishReason::kLength), chunk(R"("choices":[{"index":0,
        "delta":{},"logprobs":null,"finish_reason":"length"}])"));
}

TEST(ChatStreamTest, UsageComesWithoutChoices) {
    expect_json(ChatStream(kInfo).usage({.prompt_tokens = 10,
                                         .cached_tokens = 4,
                                         .completion_tokens = 5,
                                         .reasoning_tokens = 2,
                                         .drafted = 4,
                                         .accepted = 3}),
                chunk(R"("choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,
        "total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},
        "completion_tokens_details":{"reasoning_tokens":2,"drafted":4,"accepted":3},"prompt_cache_hit_tokens":4,
        "prompt_cache_miss_tokens":6})"));
}

TEST(ChatStreamTest, LogprobsCarryTheBytesOfTheToken) {
    const std::vector<PositionLogprobs> list = {position("\xF0\x9F", -0.5F),
                                                position("é", -INFINITY)};
    expect_json(ChatStream(kInfo).delta(content("x"), list), chunk(R"("choices":[{"index":0,
        "delta":{"content":"x"},"logprobs":{"content":[
        {"token":"\\xf0\\x9f","logprob":-0.5,"bytes":[240,159],"top_logprobs":[
            {"token":"\\xf0\\x9f","logprob":-0.5,"bytes":[240,159]}]},
        {"token":"é","logprob":-9999,"bytes":[195,169],"top_logprobs":[
            {"token":"é","logprob":-9999,"bytes":[195,169]}]}]},"finish_reason":null}])"));
}

TEST(ChatStreamTest, AnEmptyFingerprintIsLeftOut) {
    const std::string text =
        ChatStream({.id = "x", .created = 0, .model = "m", .system_fingerprint = ""}).role();
    EXPECT_EQ(text.find("system_fingerprint"), std::string::npos);
}

TEST(ChatBodyTest, IsTheFoldOfTheStream) {
    ChatBody body(kInfo, Thinking::kOff);
    body.add(reasoning("r"), std::vector{position("r", -1.0F)});
    body.add(content("a"));
    body.add(content("b"));
    expect_json(body.finish(FinishReason::kStop, {.prompt_tokens = 3,
                                                  .cached_tokens = 0,
                                                  .completion_tokens = 2,
                                                  .reasoning_tokens = 1}),
                R"({"id":"chatcmpl-1","object":"chat.completion","created":17,"model":"kri\"ll",
        "system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant",
        "content":"ab","reasoning_content":"r","refusal":null},"logprobs":{"content":[],
        "reasoning_content":[{"token":"r","logprob":-1,"bytes":[114],"top_logprobs":[
        {"token":"r","logprob":-1,"bytes":[114]}]}]},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,
        "prompt_tokens_details":{"cached_tokens":0},
        "completion_tokens_details":{"reasoning_tokens":1,"drafted":0,"accepted":0},"prompt_cache_hit_tokens":0,
        "prompt_cache_miss_tokens":3}})");
}

TEST(ChatBodyTest, ReasoningIsThereWhenThinkingIsOnEvenIfEmpty) {
    const auto message = [](Thinking thinking) {
        return json::parse(ChatBody(kInfo, thinking).finish(FinishReason::kStop, {}))
            .at("choices")
            .at(0)
            .at("message")
            .as_object();
    };
    EXPECT_EQ(message(Thinking::kOn).at("reasoning_content"), "");
    EXPECT_FALSE(message(Thinking::kOff).contains("reasoning_content"));
    EXPECT_EQ(message(Thinking::kOff).at("content"), "");
}

TEST(CompletionStreamTest, ChunksCountOffsetsInCharacters) {
    CompletionStream stream(kInfo);
    const auto first = json::parse(stream.delta("é", std::vector{position("é", -0.25F)}));
    EXPECT_EQ(first.at("object"), "text_completion");
    EXPECT_EQ(first.at("choices").at(0), json::parse(R"({"index":0,"text":"é","logprobs":{
        "tokens":["é"],"token_logprobs":[-0.25],"top_logprobs":[{"é":-0.25}],"text_offset":[0]},
        "finish_reason":null})"));
    const auto second = json::parse(stream.delta("x", std::vector{position("x", -1.0F)}));
    EXPECT_EQ(second.at("choices").at(0).at("logprobs").at("text_offset"), json::array({1}));
    EXPECT_EQ(json::parse(stream.finish(FinishReason::kStop)).at("choices").at(0),
              json::parse(R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop"})"));
    EXPECT_EQ(json::parse(stream.usage({})).at("choices"), json::array());
}

TEST(CompletionBodyTest, IsTheFoldOfTheStream) {
    CompletionBody body(kInfo);
    body.add("a", std::vector{position("\xC3", -0.5F)});
    body.add("b");
    const auto value = json::parse(body.finish(FinishReason::kLength, {}));
    EXPECT_EQ(value.at("choices").at(0), json::parse(R"({"index":0,"text":"ab","logprobs":{
        "tokens":["bytes:\\xc3"],"token_logprobs":[-0.5],"top_logprobs":[{"bytes:\\xc3":-0.5}],
        "text_offset":[0]},"finish_reason":"length"})"));
    EXPECT_EQ(value.at("usage").at("total_tokens"), 0);
}

TEST(LogprobQueueTest, GivesTheTokensWhoseTextIsGiven) {
    LogprobQueue queue;
    queue.push(position("a", -1), 1);
    queue.push(position("</think>", -2), 9);
    queue.push(position("\n", -3), 10);
    queue.push(position("b", -4), 11);
    queue.push(position("c", -5), 12);
    const auto texts = [&](const OutputEvent& event) {
        std::vector<std::string> list;
        for (const PositionLogprobs& entry : queue.take(event)) list.push_back(entry.chosen.bytes);
        return list;
    };
    EXPECT_THAT(texts(content("a", 0)), testing::ElementsAre("a"));
    EXPECT_THAT(texts(content("b", 10)), testing::ElementsAre("b"));
    EXPECT_THAT(texts(content("c", 11)), testing::ElementsAre("c"));
}

TEST(LogprobQueueTest, TokensWithinACharacterGoWithIt) {
    LogprobQueue queue;
    queue.push(position("\xF0\x9F", -1), 0);
    queue.push(position("\x98\x80", -2), 4);
    EXPECT_EQ(queue.take(content("😀", 0)).size(), 2u);
}

TEST(LogprobQueueTest, ATokenOverTwoEventsIsGivenOnce) {
    LogprobQueue queue;
    queue.push(position("abcd", -1), 4);
    EXPECT_EQ(queue.take(content("ab", 0)).size(), 1u);
    EXPECT_EQ(queue.take(content("cd", 2)).size(), 0u);
}

TEST(JsonWriterTest, AnyBytesBecomeValidJson) {
    for (const std::string text :
         {"a\xFF"
          "b",
          "\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x7F"}) {
        std::string out;
        append_json_string(out, text);
        json::error_code code;
        EXPECT_TRUE(json::parse(out, code).is_string());
        EXPECT_FALSE(code) << testing::PrintToString(text);
    }
    std::string out;
    append_json_string(out, "\t\r\\/é中😀\x1F");
    EXPECT_EQ(out, "\"\\t\\r\\\\/é中😀\\u001f\"");
}

}  // namespace
}  // namespace sluice::protocol
