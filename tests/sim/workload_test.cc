#include "sim/workload.h"

#include <gtest/gtest.h>

namespace sluice::sim {
namespace {

using std::chrono::milliseconds;
using trace::PlannedRequest;

PlannedRequest request(std::uint32_t tokens, std::vector<std::uint32_t> blocks,
                       std::uint64_t text = 1) {
    return {.at = milliseconds(1'000),
            .input_tokens = tokens,
            .output_tokens = 10,
            .text_seed = text,
            .blocks = std::move(blocks)};
}

TEST(WorkloadTest, EqualBlocksBehindEqualBlocksHaveEqualKeys) {
    const auto work = make_workload(
        {request(1'500, {5, 6, 7}), request(1'500, {5, 6, 8}), request(1'000, {6, 7})}, {});
    const auto key = [&](std::size_t i, std::size_t block) { return (*work[i].chain)[block]; };
    EXPECT_EQ(work[0].chain->size(), 3u);
    EXPECT_EQ(key(0, 0), key(1, 0));
    EXPECT_EQ(key(0, 1), key(1, 1));
    EXPECT_NE(key(0, 2), key(1, 2));
    EXPECT_NE(key(2, 0), key(0, 1));  // The same text, but another one before it.
}

TEST(WorkloadTest, WhatTheTraceDoesNotNameIsLikeNoOther) {
    const auto work = make_workload({request(1'500, {5}, 1), request(1'500, {5}, 2)}, {});
    EXPECT_EQ(work[0].chain->at(0), work[1].chain->at(0));
    EXPECT_NE(work[0].chain->at(1), work[1].chain->at(1));
}

TEST(WorkloadTest, APromptThatWasCutHasTheBlocksOfWhatIsLeft) {
    EXPECT_EQ(make_workload({request(513, {1, 2, 3, 4})}, {})[0].chain->size(), 2u);
}

TEST(WorkloadTest, TwiceTheSpeedIsHalfTheTime) {
    EXPECT_EQ(make_workload({request(1, {})}, {.speed = 2.0})[0].at, milliseconds(500));
}

TEST(WorkloadTest, TheSeedSaysWhoHasAnImage) {
    const std::vector<PlannedRequest> plan(1'000, request(10, {}));
    const auto count = [&](std::uint64_t seed) {
        std::vector<std::size_t> with;
        const auto work = make_workload(plan, {.image_share = 0.25, .seed = seed});
        for (std::size_t i = 0; i < work.size(); ++i)
            if (work[i].image_tokens > 0) with.push_back(i);
        return with;
    };
    EXPECT_NEAR(static_cast<double>(count(1).size()), 250.0, 50.0);
    EXPECT_EQ(count(1), count(1));
    EXPECT_NE(count(1), count(2));
}

TEST(WorkloadTest, ASliceBeginsAsIfTheTraceBeganThere) {
    trace::Trace trace{.name = "t", .requests = std::vector<trace::TraceRequest>(10)};
    for (std::size_t i = 0; i < 10; ++i) trace.requests[i].arrival = milliseconds(100 * i);
    ASSERT_TRUE(cut(trace, {.first = 4, .count = 3}).has_value());
    ASSERT_EQ(trace.requests.size(), 3u);
    EXPECT_EQ(trace.requests[0].arrival, milliseconds(0));
    EXPECT_EQ(trace.requests[2].arrival, milliseconds(200));
    const auto beyond = cut(trace, {.first = 3, .count = 1});
    ASSERT_FALSE(beyond.has_value());
    EXPECT_EQ(beyond.error().place(), "t");
}

TEST(WorkloadTest, ASliceIsWrittenFirstAndCount) {
    EXPECT_EQ(parse_slice("1000:500")->first, 1'000u);
    EXPECT_EQ(parse_slice("1000:500")->count, 500u);
    EXPECT_EQ(parse_slice("7:")->count, 0u);
    for (const char* wrong : {"", "5", "a:5", "5:b", ":", "5:-1", "5:1:2"})
        EXPECT_FALSE(parse_slice(wrong).has_value()) << wrong;
}

}  // namespace
}  // namespace sluice::sim
