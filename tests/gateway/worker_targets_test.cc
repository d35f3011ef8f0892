#include "gateway/worker_targets.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sluice::gateway {
namespace {

constexpr routing::Time kNow = routing::Time(std::chrono::seconds(1'000));

class WorkerTargetsTest : public testing::Test {
protected:
    routing::Registry registry{8};
    WorkerTargets targets{registry, {}};
};

TEST_F(WorkerTargetsTest, RanksAreReadyAndDrainedTogether) {
    ASSERT_TRUE(targets.resize(3));
    targets.set_ready(true, kNow);
    EXPECT_EQ(registry.ready_in(0, kNow), 3U);
    targets.drain(true);
    EXPECT_EQ(registry.ready_in(0, kNow), 0U);
    EXPECT_TRUE(targets.draining());
    // One that comes later is drained as the others are.
    ASSERT_TRUE(targets.resize(4));
    targets.set_ready(true, kNow);
    EXPECT_EQ(registry.ready_in(0, kNow), 0U);
    targets.drain(false);
    EXPECT_EQ(registry.ready_in(0, kNow), 4U);
    targets.set_ready(false, kNow);
    EXPECT_EQ(registry.ready_in(0, kNow), 0U);
}

TEST_F(WorkerTargetsTest, RanksAreNamedOnlyWhereThereAreSeveral) {
    ASSERT_TRUE(targets.resize(1));
    EXPECT_EQ(targets.rank_of(targets.first()), std::nullopt);
    ASSERT_TRUE(targets.resize(2));
    EXPECT_EQ(targets.rank_of(targets.indices()[0]), 0U);
    EXPECT_EQ(targets.rank_of(targets.indices()[1]), 1U);
}

TEST_F(WorkerTargetsTest, RanksFailTogether) {
    ASSERT_TRUE(targets.resize(2));
    EXPECT_TRUE(targets.describe({}, "stable-0", kNow));
    EXPECT_EQ(registry.failure_group(targets.first()).size(), 2U);
}

TEST_F(WorkerTargetsTest, WhatIsGoneGivesItsPlacesBack) {
    {
        WorkerTargets others(registry, {});
        ASSERT_TRUE(others.resize(8));
        EXPECT_FALSE(targets.resize(1)) << "there is no room";
        ASSERT_TRUE(others.resize(6));
        EXPECT_TRUE(targets.resize(2));
    }
    EXPECT_TRUE(targets.resize(8));
    EXPECT_FALSE(targets.resize(9));
    EXPECT_EQ(targets.indices().size(), 8U);
}

TEST_F(WorkerTargetsTest, WhatALoadTakesIsWhatTheWorkerSays) {
    ASSERT_TRUE(targets.resize(1));
    targets.set_ready(true, kNow);
    const routing::WorkerIndex store = *registry.add_store();
    std::vector<routing::BlockHash> blocks(100);
    std::iota(blocks.begin(), blocks.end(), 1);
    registry.index().stored(store, blocks);
    const auto ttft_if = [&](std::uint32_t token_ns) {
        targets.report({.state = port::EngineState::kReady, .kv_node_token_ns = token_ns}, kNow);
        return registry.pick({.tokens = 6'401, .blocks = blocks}, {}, kNow)->ttft;
    };
    const double fast = ttft_if(1'000);
    EXPECT_NEAR(ttft_if(21'000) - fast, 0.020e-3 * 6'400, 1e-3);
    EXPECT_NEAR(ttft_if(0) - fast, 0.020e-3 * 6'400, 1e-3) << "as it said last";
}

TEST_F(WorkerTargetsTest, EachRankHasItsOwnLoad) {
    ASSERT_TRUE(targets.resize(2));
    targets.set_ready(true, kNow);
    port::LoadReport load{.state = port::EngineState::kReady, .running = 5};
    load.ranks = {{.running = 5}, {.running = 0}};
    targets.report(load, kNow);
    EXPECT_EQ(registry.total_load(targets.indices()[0], kNow).requests, 5U);
    EXPECT_EQ(registry.total_load(targets.indices()[1], kNow).requests, 0U);
    const auto pick = registry.pick({.tokens = 1}, {}, kNow);
    ASSERT_TRUE(pick.has_value());
    EXPECT_EQ(targets.rank_of(pick->lease.worker()), 1U);
    EXPECT_EQ(targets.requests(), 1U);
}

TEST_F(WorkerTargetsTest, ALongPromptIsAsMuchWorkAsItsAttentionMakesIt) {
    ASSERT_TRUE(targets.resize(1));
    targets.set_ready(true, kNow);
    const auto work_of = [&](std::uint64_t tokens) {
        return registry.pick({.tokens = tokens}, {}, kNow)->work;
    };
    // Of a worker that doesn't say, each token is as much as the next.
    ASSERT_TRUE(targets.describe({}, "stable-0", kNow));
    EXPECT_EQ(work_of(16'000), 16'000.0);
    ASSERT_TRUE(targets.describe({.attention_tokens = 1'000}, "stable-0", kNow));
    EXPECT_EQ(work_of(16'000), 16'000.0 + 8 * 16'000.0);
}

}  // namespace
}  // namespace sluice::gateway
