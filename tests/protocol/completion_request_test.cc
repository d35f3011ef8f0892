#include "protocol/completion_request.h"

#include <gmock/gmock.h>

namespace sluice::protocol {
namespace {

using testing::ElementsAre;

std::string with(const std::string& fields) { return R"({"model":"m",)" + fields + "}"; }

CompletionRequest parsed(const std::string& body) {
    const auto request = parse_completion_request(body);
    EXPECT_TRUE(request.has_value()) << body << ": " << request.error().to_string();
    return request.value_or(CompletionRequest{});
}

Error refused(const std::string& body) {
    const auto request = parse_completion_request(body);
    EXPECT_FALSE(request.has_value()) << body;
    return request ? Error::invalid("accepted") : request.error();
}

TEST(CompletionRequestTest, APromptIsTextOrTokenIdsAloneOrInAListOfOne) {
    EXPECT_EQ(std::get<std::string>(parsed(with(R"("prompt":"hi")")).prompt), "hi");
    EXPECT_EQ(std::get<std::string>(parsed(with(R"("prompt":["hi"])")).prompt), "hi");
    EXPECT_THAT(std::get<1>(parsed(with(R"("prompt":[1,2])")).prompt), ElementsAre(1, 2));
    EXPECT_THAT(std::get<1>(parsed(with(R"("prompt":[[1,2]])")).prompt), ElementsAre(1, 2));
}

TEST(CompletionRequestTest, SixteenTokensAreTheDefault) {
    EXPECT_EQ(parsed(with(R"("prompt":"x")")).options.max_tokens, 16u);
    EXPECT_EQ(parsed(with(R"("prompt":"x")")).options.sampling.max_new_tokens, 16u);
    EXPECT_EQ(parsed(with(R"("prompt":"x","max_tokens":5)")).options.sampling.max_new_tokens, 5u);
    EXPECT_EQ(refused(with(R"("prompt":"x","min_tokens":17)")).place(), "min_tokens");
}

TEST(CompletionRequestTest, LogprobsIsANumberOfAlternatives) {
    EXPECT_FALSE(parsed(with(R"("prompt":"x")")).options.logprobs);
    const CompletionRequest request = parsed(with(R"("prompt":"x","logprobs":0)"));
    EXPECT_TRUE(request.options.logprobs);
    EXPECT_EQ(request.options.top_logprobs, 0u);
    EXPECT_EQ(refused(with(R"("prompt":"x","logprobs":6)")).place(), "logprobs");
    EXPECT_EQ(refused(with(R"("prompt":"x","logprobs":true)")).place(), "logprobs");
}

TEST(CompletionRequestTest, ErrorsNameTheirPlace) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"("x":1)", "prompt"},
        {R"("prompt":7)", "prompt"},
        {R"("prompt":[])", "prompt"},
        {R"("prompt":[[]])", "prompt[0]"},
        {R"("prompt":[{}])", "prompt[0]"},
        {R"("prompt":[1,"a"])", "prompt[1]"},
        {R"("prompt":[1,-2])", "prompt[1]"},
        {R"("prompt":[[1,4294967296]])", "prompt[0][1]"},
        {R"("prompt":"x","temperature":9)", "temperature"},
        {R"("prompt":"x","add_special_tokens":1)", "add_special_tokens"}};
    for (const auto& [fields, place] : cases)
        EXPECT_EQ(refused(with(fields)).place(), place) << fields;
}

TEST(CompletionRequestTest, WhatWouldChangeTheAnswerIsRefusedByName) {
    for (const std::string fields :
         {R"("prompt":["a","b"])", R"("prompt":"x","echo":true)", R"("prompt":"x","suffix":"y")",
          R"("prompt":"x","n":2)", R"("prompt":"x","best_of":3)"}) {
        EXPECT_EQ(refused(with(fields)).code(), ErrorCode::kUnsupported) << fields;
    }
}

}  // namespace
}  // namespace sluice::protocol
