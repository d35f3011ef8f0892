#include "traffic/comparison.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace sluice::traffic {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Comparable kAll{.text = true, .tokens = true, .json = true};

Answer answer(std::string text = R"({"a":1})") {
    return {.text = std::move(text), .finish_reason = "stop", .output_ids = {1, 2, 3}};
}

TEST(ComparisonTest, EqualAnswersDifferInNothing) {
    const Comparison comparison = compare(answer(), answer(), kAll);
    EXPECT_TRUE(comparison.same());
    EXPECT_FALSE(comparison.first_difference);
}

TEST(ComparisonTest, TokensAreComparedOneByOne) {
    Answer other = answer();
    other.output_ids = {1, 9, 3};
    const Comparison changed = compare(answer(), other, kAll);
    EXPECT_THAT(changed.differences, ElementsAre("tokens"));
    EXPECT_EQ(changed.first_difference, 1U);
    other.output_ids = {1, 2};
    EXPECT_EQ(compare(answer(), other, kAll).first_difference, 2U);
}

TEST(ComparisonTest, DrawnTextsAreNotCompared) {
    EXPECT_THAT(compare(answer("a"), answer("b"), {}).differences, IsEmpty());
    EXPECT_THAT(compare(answer("a"), answer("b"), {.text = true}).differences, ElementsAre("text"));
}

TEST(ComparisonTest, ThinkingIsText) {
    Answer other = answer();
    other.reasoning = "hm";
    EXPECT_THAT(compare(answer(), other, kAll).differences, ElementsAre("reasoning"));
}

TEST(ComparisonTest, JsonCountsWhereJsonWasAskedFor) {
    EXPECT_THAT(compare(answer("{}"), answer("{"), {.json = true}).differences,
                ElementsAre("json"));
    EXPECT_THAT(compare(answer("{}"), answer("{"), {}).differences, IsEmpty());
    EXPECT_THAT(compare(answer("{"), answer("["), {.json = true}).differences, IsEmpty());
}

TEST(ComparisonTest, ToolArgumentsAreEqualAsJson) {
    Answer left = answer();
    Answer right = answer();
    left.tool_calls = {{"weather", R"({"city":"Rome","days":2})"}};
    right.tool_calls = {{"weather", R"({ "days": 2, "city": "Rome" })"}};
    EXPECT_TRUE(compare(left, right, {}).same());
    right.tool_calls[0].arguments = R"({"city":"Paris","days":2})";
    EXPECT_THAT(compare(left, right, {}).differences, ElementsAre("tool_arguments"));
    right.tool_calls[0].arguments = R"({"city":"Rome","days":2)";
    EXPECT_THAT(compare(left, right, {}).differences, ElementsAre("tool_arguments"));
    right.tool_calls[0].name = "wetter";
    EXPECT_THAT(compare(left, right, {}).differences, ElementsAre("tool_name"));
    right.tool_calls.clear();
    EXPECT_THAT(compare(left, right, {}).differences, ElementsAre("tool_name"));
}

TEST(ComparisonTest, AFailureIsComparedByItsClassAlone) {
    Answer failed{.error = "worker_lost"};
    EXPECT_THAT(compare(answer(), failed, kAll).differences, ElementsAre("error_class"));
    EXPECT_TRUE(compare(failed, failed, kAll).same());
}

TEST(ComparisonTest, AFinishReasonAlwaysCounts) {
    Answer other = answer();
    other.finish_reason = "length";
    EXPECT_THAT(compare(answer(), other, {}).differences, ElementsAre("finish_reason"));
}

TEST(ComparisonTest, OfACutAnswerTheBeginningCounts) {
    Answer cut = answer(R"({"a")");
    cut.cut = true;
    cut.output_ids = {1};
    EXPECT_TRUE(compare(answer(), cut, kAll).same());
    cut.text = R"({"b")";
    EXPECT_THAT(compare(answer(), cut, kAll).differences, ElementsAre("text"));
}

TEST(ComparisonTest, TimesAreSubtractedWhereBothAreThere) {
    using std::chrono::milliseconds;
    Answer baseline = answer();
    Answer candidate = answer();
    baseline.ttft = milliseconds(100);
    candidate.ttft = milliseconds(130);
    candidate.tbt = milliseconds(5);
    const Comparison comparison = compare(baseline, candidate, {});
    EXPECT_EQ(comparison.ttft_delta, milliseconds(30));
    EXPECT_FALSE(comparison.tbt_delta);
}

TEST(ComparisonTest, LogprobsDifferBeyondTheTolerance) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    Comparison comparison;
    add_logprobs(comparison, {-0.5F, kNever}, {-0.75F, kNever}, 0.3);
    EXPECT_EQ(comparison.logprob_delta, 0.25);
    EXPECT_TRUE(comparison.same());
    add_logprobs(comparison, {-0.5F}, {-1.0F}, 0.3);
    EXPECT_THAT(comparison.differences, ElementsAre("logprobs"));
    Comparison impossible;
    add_logprobs(impossible, {-0.5F}, {kNever}, 0.3);
    EXPECT_EQ(impossible.logprob_delta, 100.0);
    Comparison missing;
    add_logprobs(missing, {-0.5F}, {}, 0.3);
    EXPECT_FALSE(missing.same());
}

}  // namespace
}  // namespace sluice::traffic
