#include "protocol/chat_request.h"

#include <gmock/gmock.h>

#include "base/limits.h"

namespace sluice::protocol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// A request of one message and `fields`, such as `"n":1`.
std::string with(const std::string& fields) {
    return R"({"model":"m","messages":[{"role":"user","content":"q"}])" +
           (fields.empty() ? "" : "," + fields) + "}";
}

std::string with_messages(const std::string& messages) {
    return R"({"model":"m","messages":[)" + messages + "]}";
}

ChatRequest parsed(const std::string& body, const ChatDefaults& defaults = {}) {
    const auto request = parse_chat_request(body, defaults);
    EXPECT_TRUE(request.has_value()) << body << ": " << request.error().to_string();
    return request.value_or(ChatRequest{});
}

Error refused(const std::string& body) {
    const auto request = parse_chat_request(body);
    EXPECT_FALSE(request.has_value()) << body;
    return request ? Error::invalid("accepted") : request.error();
}

TEST(ChatRequestTest, TheSmallestRequestLeavesEverythingElseOpen) {
    const ChatRequest request = parsed(with(""));
    EXPECT_EQ(request.options.model, "m");
    EXPECT_EQ(request.conversation.messages.size(), 1u);
    EXPECT_EQ(request.conversation.messages[0].parts[0].text, "q");
    EXPECT_EQ(request.conversation.thinking, Thinking::kOff);
    EXPECT_FALSE(request.options.max_tokens || request.options.seed ||
                 request.options.temperature || request.options.top_p);
    EXPECT_EQ(request.options.sampling, SamplingParams{});
    EXPECT_FALSE(request.options.stream || request.options.include_usage ||
                 request.options.logprobs);
}

TEST(ChatRequestTest, EveryGivenFieldArrives) {
    const ChatRequest request = parsed(with(
        R"("max_tokens":77,"temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,"seed":9,
           "frequency_penalty":-2,"presence_penalty":2,"repetition_penalty":1.5,
           "logit_bias":{"12":-100,"3":1.5},"stop":["a","b","a"],"stop_token_ids":[5,6],
           "min_tokens":2,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true},
           "logprobs":true,"top_logprobs":20,"prompt_cache_key":"k","user":"u")"));
    const GenerationOptions& options = request.options;
    EXPECT_EQ(options.max_tokens, 77u);
    EXPECT_EQ(options.temperature, 0.5F);
    EXPECT_EQ(options.top_p, 0.25F);
    EXPECT_EQ(options.seed, 9u);
    EXPECT_THAT(options.stop, ElementsAre("a", "b"));
    EXPECT_TRUE(options.stream && options.include_usage && options.logprobs);
    EXPECT_EQ(options.top_logprobs, 20u);
    EXPECT_EQ(options.prompt_cache_key, "k");
    EXPECT_EQ(options.user, "u");
    const SamplingParams wanted{.max_new_tokens = 77,
                                .temperature = 0.5F,
                                .top_p = 0.25F,
                                .top_k = 7,
                                .min_p = 0.125F,
                                .seed = 9,
                                .frequency_penalty = -2.0F,
                                .presence_penalty = 2.0F,
                                .repetition_penalty = 1.5F,
                                .logit_bias = {{3, 1.5F}, {12, -100.0F}},
                                .stop_token_ids = {5, 6},
                                .min_new_tokens = 2,
                                .ignore_eos = true};
    EXPECT_EQ(options.sampling, wanted);
}

TEST(ChatRequestTest, NullIsAbsent) {
    const ChatRequest request = parsed(
        with(R"("stop":null,"seed":null,"tools":null,"n":null,"stream_options":null,"thinking":null,
                "reasoning_effort":null,"logit_bias":null,"response_format":null,"audio":null)"));
    EXPECT_TRUE(request.options.stop.empty());
}

TEST(ChatRequestTest, AnErrorNamesTheFieldItsValueAndItsRange) {
    const Error error = refused(with(R"("temperature":3)"));
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(error.place(), "temperature");
    EXPECT_EQ(error.message(), "temperature is 3, but must be between 0 and 2");
    EXPECT_EQ(refused(with(R"("top_p":0)")).message(),
              "top_p is 0, but must be above 0 and at most 1");
    EXPECT_EQ(refused(with(R"("stream":"yes")")).message(),
              "stream must be true or false, but is \"yes\"");
}

TEST(ChatRequestTest, WrongTypesAndRangesAreRefusedAtTheirPlace) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"("temperature":"1")", "temperature"},
        {R"("temperature":-0.1)", "temperature"},
        {R"("temperature":1e999)", "temperature"},
        {R"("top_p":1.01)", "top_p"},
        {R"("top_k":-2)", "top_k"},
        {R"("top_k":1.5)", "top_k"},
        {R"("min_p":1.5)", "min_p"},
        {R"("presence_penalty":2.5)", "presence_penalty"},
        {R"("frequency_penalty":3)", "frequency_penalty"},
        {R"("repetition_penalty":0)", "repetition_penalty"},
        {R"("max_tokens":0)", "max_tokens"},
        {R"("max_tokens":393217)", "max_tokens"},
        {R"("max_completion_tokens":-1)", "max_completion_tokens"},
        {R"("max_tokens":1,"max_completion_tokens":2)", "max_completion_tokens"},
        {R"("max_tokens":4,"min_tokens":5)", "min_tokens"},
        {R"("seed":1.5)", "seed"},
        {R"("seed":18446744073709551616)", "seed"},
        {R"("stop":7)", "stop"},
        {R"("stop":"")", "stop"},
        {R"("stop":["a",7])", "stop[1]"},
        {R"("stop":["a",null])", "stop[1]"},
        {R"("stop_token_ids":[1,-1])", "stop_token_ids[1]"},
        {R"("logit_bias":[])", "logit_bias"},
        {R"("logit_bias":{"x":1})", "logit_bias"},
        {R"("logit_bias":{"01":1})", "logit_bias"},
        {R"("logit_bias":{"-1":1})", "logit_bias"},
        {R"("logit_bias":{"1":101})", "logit_bias.1"},
        {R"("logit_bias":{"1":null})", "logit_bias.1"},
        {R"("logprobs":1)", "logprobs"},
        {R"("top_logprobs":3)", "top_logprobs"},
        {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
        {R"("stream_options":true)", "stream_options"},
        {R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
        {R"("thinking":true)", "thinking"},
        {R"("thinking":{})", "thinking.type"},
        {R"("thinking":{"type":"x"})", "thinking.type"},
        {R"("reasoning_effort":"bogus")", "reasoning_effort"},
        {R"("reasoning_effort":0)", "reasoning_effort"},
        {R"("reasoning_effort":101)", "reasoning_effort"},
        {R"("model":7)", "model"},
        {R"("n":0)", "n"},
        {R"("user":{})", "user"},
        {R"("response_format":"json")", "response_format"}};
    for (const auto& [fields, place] : cases) {
        const Error error = refused(with(fields));
        EXPECT_EQ(error.place(), place) << fields;
        EXPECT_NE(error.code(), ErrorCode::kUnsupported) << fields;
    }
}

TEST(ChatRequestTest, MessagesAreCheckedToTheirParts) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "messages"},
        {"7", "messages[0]"},
        {R"({"content":"x"})", "messages[0].role"},
        {R"({"role":7,"content":"x"})", "messages[0].role"},
        {R"({"role":"bot","content":"x"})", "messages[0].role"},
        {R"({"role":"user"})", "messages[0].content"},
        {R"({"role":"user","content":null})", "messages[0].content"},
        {R"({"role":"user","content":{}})", "messages[0].content"},
        {R"({"role":"user","content":["x"]})", "messages[0].content[0]"},
        {R"({"role":"user","content":[{"text":"x"}]})", "messages[0].content[0].type"},
        {R"({"role":"user","content":[{"type":"text"}]})", "messages[0].content[0].text"},
        {R"({"role":"user","content":[{"type":"text","text":7}]})", "messages[0].content[0].text"},
        {R"({"role":"user","content":"x"},{"role":"assistant","content":null})",
         "messages[1].content"},
        {R"({"role":"assistant","content":"x","reasoning_content":7})",
         "messages[0].reasoning_content"},
        {R"({"role":"assistant","content":"x","prefix":"true"})", "messages[0].prefix"},
        {R"({"role":"assistant","content":"x","prefix":true},{"role":"user","content":"y"})",
         "messages[0].prefix"},
        {R"({"role":"assistant","content":"x","tool_calls":[]})", "messages[0].tool_calls"}};
    for (const auto& [messages, place] : cases) {
        const Error error = refused(with_messages(messages));
        EXPECT_EQ(error.place(), place) << messages;
        EXPECT_EQ(error.code(), ErrorCode::kInvalid) << messages;
    }
}

TEST(ChatRequestTest, WhatWouldChangeTheAnswerIsRefusedByName) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"("tools":[{"type":"function"}])", "tools"},
        {R"("tool_choice":"required")", "tool_choice"},
        {R"("tool_choice":{"type":"function"})", "tool_choice"},
        {R"("functions":[{}])", "functions"},
        {R"("function_call":{"name":"f"})", "function_call"},
        {R"("response_format":{"type":"json_object"})", "response_format"},
        {R"("structured_outputs":{"json":{}})", "structured_outputs"},
        {R"("guided_regex":"a*")", "guided_regex"},
        {R"("n":2)", "n"},
        {R"("best_of":2)", "best_of"},
        {R"("use_beam_search":true)", "use_beam_search"},
        {R"("modalities":["text","audio"])", "modalities"},
        {R"("audio":{"voice":"x"})", "audio"},
        {R"("prediction":{})", "prediction"},
        {R"("web_search_options":{})", "web_search_options"},
        {R"("prompt_logprobs":1)", "prompt_logprobs"},
        {R"("echo":true)", "echo"},
        {R"("suffix":"x")", "suffix"},
        {R"("truncate_prompt_tokens":5)", "truncate_prompt_tokens"},
        {R"("bad_words":["x"])", "bad_words"},
        {R"("allowed_token_ids":[1])", "allowed_token_ids"},
        {R"("logits_processors":["x"])", "logits_processors"},
        {R"("verbosity":"low")", "verbosity"},
        {R"("chat_template_kwargs":{"thinking":true})", "chat_template_kwargs"},
        {R"("thinking":{"type":"enabled","budget_tokens":9})", "thinking.budget_tokens"}};
    for (const auto& [fields, place] : cases) {
        const Error error = refused(with(fields));
        EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << fields;
        EXPECT_EQ(error.place(), place) << fields;
        EXPECT_THAT(error.message(), HasSubstr("supported yet")) << fields;
    }
}

TEST(ChatRequestTest, PartsAndTurnsThatComeLaterAreRefusedByName) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"({"role":"tool","content":"x","tool_call_id":"a"})", "messages[0].role"},
        {R"({"role":"assistant","content":null,"tool_calls":[{"id":"a"}]})",
         "messages[0].tool_calls"},
        {R"({"role":"assistant","content":"x","function_call":{}})", "messages[0].function_call"},
        {R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]})",
         "messages[0].content[1].type"}};
    for (const auto& [messages, place] : cases) {
        const Error error = refused(with_messages(messages));
        EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << messages;
        EXPECT_EQ(error.place(), place) << messages;
    }
}

TEST(ChatRequestTest, WhatAsksForNothingPasses) {
    (void)parsed(with(
        R"("tools":[],"tool_choice":"auto","functions":[],"response_format":{"type":"text"},"n":1,
           "best_of":1,"use_beam_search":false,"modalities":["text"],"echo":false,"suffix":"",
           "bad_words":[],"skip_special_tokens":true,"verbosity":"medium","structured_outputs":{})"));
}

TEST(ChatRequestTest, FieldsThatCanNotChangeTheAnswerAreIgnored) {
    (void)parsed(with(
        R"("metadata":{"a":"b"},"store":true,"service_tier":"flex","parallel_tool_calls":true,
           "safety_identifier":"x","a_field_of_tomorrow":[{"x":1}],"priority":3)"));
    (void)parsed(with_messages(R"({"role":"user","content":"x","name":"bob","refusal":null})"));
}

TEST(ChatRequestTest, MessagesBecomeAConversation) {
    const ChatRequest request = parsed(with_messages(
        R"({"role":"developer","content":[{"type":"text","text":"s"},{"type":"text","text":""}]},
           {"role":"user","content":"q"},
           {"role":"latest_reminder","content":"now"},
           {"role":"assistant","content":"","reasoning_content":"","prefix":true})"));
    const auto& messages = request.conversation.messages;
    ASSERT_EQ(messages.size(), 4u);
    EXPECT_EQ(messages[0].role, Role::kSystem);
    EXPECT_EQ(messages[0].parts.size(), 2u);
    EXPECT_EQ(messages[1].reasoning, std::nullopt);
    EXPECT_EQ(messages[2].role, Role::kLatestReminder);
    EXPECT_EQ(messages[3].reasoning, "");
    EXPECT_TRUE(messages[3].prefix);
}

TEST(ChatRequestTest, ThinkingDecidesBeforeEffortAndEffortBeforeTheDefault) {
    const ChatDefaults on{.thinking = Thinking::kOn, .model = ""};
    const auto thinking = [](const ChatRequest& request) { return request.conversation.thinking; };
    EXPECT_EQ(thinking(parsed(with(""), on)), Thinking::kOn);
    EXPECT_EQ(thinking(parsed(with(R"("reasoning_effort":"none")"), on)), Thinking::kOff);
    EXPECT_EQ(thinking(parsed(with(R"("reasoning_effort":"low")"))), Thinking::kOn);
    EXPECT_EQ(thinking(parsed(with(R"("thinking":{"type":"enabled"})"))), Thinking::kOn);
    EXPECT_EQ(thinking(parsed(with(R"("thinking":{"type":"disabled"},"reasoning_effort":"max")"))),
              Thinking::kOff);
    EXPECT_EQ(thinking(parsed(with(R"("thinking":{"type":"enabled"},"reasoning_effort":"none")"))),
              Thinking::kOn);
}

TEST(ChatRequestTest, EffortFollowsDeepSeeksMapAndTakesNumbers) {
    const auto effort = [](const std::string& value) {
        return parsed(with(R"("reasoning_effort":)" + value)).conversation.effort;
    };
    EXPECT_EQ(effort(R"("minimal")"), Effort(EffortLevel::kLow));
    EXPECT_EQ(effort(R"("medium")"), Effort(EffortLevel::kHigh));
    EXPECT_EQ(effort(R"("xhigh")"), Effort(EffortLevel::kXhigh));
    EXPECT_EQ(effort(R"("ultra")"), Effort(EffortLevel::kMax));
    EXPECT_EQ(effort("1"), Effort(1));
    EXPECT_EQ(effort("100"), Effort(100));
}

TEST(ChatRequestTest, AnySixtyFourBitIntegerIsASeed) {
    const auto seed = [](const std::string& value) {
        return parsed(with(R"("seed":)" + value)).options.seed;
    };
    EXPECT_EQ(seed("0"), 0u);
    EXPECT_EQ(seed("-1"), 0xFFFF'FFFF'FFFF'FFFFu);
    EXPECT_EQ(seed("18446744073709551615"), 0xFFFF'FFFF'FFFF'FFFFu);
    EXPECT_EQ(seed("-9223372036854775808"), 0x8000'0000'0000'0000u);
}

TEST(ChatRequestTest, TheNewerTokenLimitCountsAndTopKHasTwoWaysToBeOff) {
    EXPECT_EQ(parsed(with(R"("max_completion_tokens":5)")).options.max_tokens, 5u);
    EXPECT_EQ(parsed(with(R"("max_completion_tokens":5,"max_tokens":5)")).options.max_tokens, 5u);
    EXPECT_EQ(parsed(with(R"("top_k":-1)")).options.sampling.top_k, 0);
    EXPECT_EQ(parsed(with(R"("max_tokens":16.0)")).options.max_tokens, 16u);
}

TEST(ChatRequestTest, BoundsOnListsHold) {
    std::string stop = R"("stop":["a0")";
    for (std::size_t i = 1; i <= limits::kStopStrings; ++i)
        stop += ",\"a" + std::to_string(i) + "\"";
    EXPECT_EQ(refused(with(stop + "]")).place(), "stop");
    const std::string longest(limits::kStopStringBytes, 'x');
    (void)parsed(with(R"("stop":")" + longest + "\""));
    EXPECT_EQ(refused(with(R"("stop":"x)" + longest + "\"")).code(), ErrorCode::kOutOfRange);
}

TEST(ChatRequestTest, AModelIsNeededUnlessThereIsADefault) {
    const std::string body = R"({"messages":[{"role":"user","content":"q"}]})";
    EXPECT_EQ(refused(body).place(), "model");
    EXPECT_EQ(parsed(body, {.thinking = Thinking::kOff, .model = "krill"}).options.model, "krill");
    EXPECT_EQ(refused(R"({"model":"","messages":[{"role":"user","content":"q"}]})").place(),
              "model");
}

TEST(ChatRequestTest, WhatIsNotAJsonObjectIsRefused) {
    const std::vector<std::string> bodies = {"",
                                             "{",
                                             "[]",
                                             "null",
                                             "7",
                                             "{} x",
                                             "\xFF",
                                             "{,}",
                                             "{\"a\":\"\xC3\"}",
                                             "{\"a\":\"\xED\xA0\x80\"}"};
    for (const std::string& body : bodies) {
        EXPECT_EQ(refused(body).code(), ErrorCode::kInvalid) << body;
        EXPECT_EQ(refused(body).place(), "") << body;
    }
}

TEST(ChatRequestTest, NestingIsBounded) {
    const std::string deep(10'000, '[');
    EXPECT_THAT(refused(deep).message(), HasSubstr("deeper than 128"));
    EXPECT_THAT(refused(with(R"("x":)" + deep)).message(), HasSubstr("deeper than 128"));
    // The root is a level of its own.
    const std::size_t fits = limits::kJsonDepth - 1;
    (void)parsed(with(R"("x":)" + std::string(fits, '[') + std::string(fits, ']')));
}

TEST(ChatRequestTest, ADocumentThatGrowsTooLargeInMemoryIsRefused) {
    std::string body = R"({"model":"m","x":[)";
    while (body.size() < 40'000'000) body += "[],[],[],[],[],[],[],[],";
    body += "0]}";
    EXPECT_THAT(refused(body).message(), HasSubstr("bytes of memory"));
}

}  // namespace
}  // namespace sluice::protocol
