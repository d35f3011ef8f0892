#include "routing/policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sluice::routing {
namespace {

constexpr std::array kAll{Policy::kDefault, Policy::kRoundRobin, Policy::kLeastLoaded,
                          Policy::kOverlap};

// Elsewhere two integers were divided, and the cache counted for nothing.
TEST(PolicyTest, MoreOverlapIsNeverWorseAndLessWorkIsBetter) {
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) {
        const Costs costs{.attention_tokens = i % 2 == 0 ? 0.0 : 1.0 + random() % 100'000,
                          .load_seconds_per_token = i % 3 == 0 ? (random() % 100) * 1e-5 : 0.0,
                          .kv_tokens = i % 5 == 0 ? 100'000U : 0U,
                          .replay = static_cast<std::uint32_t>(random() % 128),
                          .min_hit = static_cast<std::uint32_t>(random() % 256)};
        const Demand demand{.phase = static_cast<LegPhase>(random() % kLegPhases),
                            .tokens = 1 + random() % 200'000};
        Candidate worker{.costs = &costs, .pressure = (1 + random() % 4) / 4.0};
        worker.load = {.requests = static_cast<std::uint32_t>(random() % 50),
                       .prefill_work = random() % 100'000};
        worker.matched_tokens = random() % (demand.tokens + 1);
        Candidate better = worker;
        better.matched_tokens += random() % (demand.tokens - worker.matched_tokens + 1);
        // A hit that is too short to use costs its replay.
        if (worker.matched_tokens < costs.min_hit) better.matched_tokens = worker.matched_tokens;
        for (const Policy policy : kAll) {
            const double before = judge(policy, demand, worker).value;
            EXPECT_LE(judge(policy, demand, better).value, before + 1e-9 * std::abs(before));
        }
    }
    const Costs costs;
    Candidate worker{.costs = &costs};
    const Demand demand{.tokens = 1'000};
    const double without = judge(Policy::kDefault, demand, worker).value;
    worker.matched_tokens = 64;
    EXPECT_LT(judge(Policy::kDefault, demand, worker).value, without);
}

TEST(PolicyTest, TheTimeToTheFirstTokenIsWaitLoadingAndComputing) {
    const Costs costs{.attention_tokens = 1'000, .load_seconds_per_token = 1e-5};
    Candidate worker{.costs = &costs, .seconds_per_work = 1e-3};
    worker.load.prefill_work = 500;
    worker.matched_tokens = 1'000;
    // The last 1,000 of 2,000 tokens attend to 1,500 each: 1,000 + 1,500.
    const Score score = judge(Policy::kDefault, {.tokens = 2'000}, worker);
    EXPECT_NEAR(score.ttft, 0.5 + 0.01 + 2.5, 1e-6);
    EXPECT_EQ(score.load.prefill_tokens, 1'000U);
    EXPECT_EQ(score.load.kv_tokens, 2'000U);
}

TEST(PolicyTest, TheLastTokenIsAlwaysComputedAndAReplayToo) {
    EXPECT_EQ(tokens_to_compute({}, 640, 640), 1U);
    EXPECT_EQ(tokens_to_compute({.replay = 128}, 640, 700), 128U);
    EXPECT_EQ(tokens_to_compute({.replay = 128}, 0, 60), 60U);
    EXPECT_EQ(tokens_to_compute({.replay = 128}, 64, 100), 100U);
    EXPECT_EQ(tokens_to_compute({.min_hit = 256}, 192, 1'000), 1'000U);
}

TEST(PolicyTest, AnEngineWhosePoolIsFullIsAvoided) {
    const Costs costs{.kv_tokens = 100'000};
    Candidate worker{.costs = &costs};
    const Demand demand{.tokens = 1'000};
    worker.load.kv_tokens = 50'000;
    const double half = judge(Policy::kDefault, demand, worker).value;
    worker.load.kv_tokens = 95'000;
    EXPECT_GT(judge(Policy::kDefault, demand, worker).value, 2 * half);
}

TEST(PolicyTest, NamesAreReadAsTheyAreWritten) {
    for (const Policy policy : kAll) EXPECT_EQ(parse_policy(to_string(policy)), policy);
    EXPECT_EQ(parse_policy("fastest"), std::nullopt);
}

}  // namespace
}  // namespace sluice::routing
