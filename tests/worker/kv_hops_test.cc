#include "worker/kv_hops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"

namespace sluice::worker {
namespace {

using std::chrono::steady_clock;
using Parts = std::vector<std::size_t>;
using Ranges = std::vector<kv::TokenRange>;

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;
constexpr auto kHas = std::optional(Retention::kChat);

TEST(UsableBlocksTest, WhatLiesBehindAHoleIsUsedAndTheHoleComputed) {
    const kv::UsablePrefix prefix =
        usable_blocks({true, true, false, true, false}, 5 * kBlock + 10);
    EXPECT_EQ(prefix.load, (std::vector<Parts>{{0, 1, 3}}));
    EXPECT_EQ(prefix.compute, (Ranges{{2 * kBlock, 3 * kBlock}}));
    EXPECT_EQ(prefix.saved(), 3 * kBlock);
}

TEST(UsableBlocksTest, APromptOfLessThanABlockHasNone) {
    EXPECT_EQ(usable_blocks({}, 10).tokens, 0U);
    EXPECT_EQ(usable_blocks({}, 10).load, (std::vector<Parts>{{}}));
}

class KvHopsTest : public ::testing::Test {
protected:
    KvHopsTest() {
        handover_.hold = "h-1";
        hops_.add({.source = "peer", .speed = &near_, .peer = &handover_, .has = {kHas}});
        hops_.add({.source = "dram", .speed = &near_, .has = {kHas, kHas}});
        hops_.add({.source = "node", .speed = &far_, .has = {{}, kHas, kHas, kHas}});
    }

    [[nodiscard]] std::string source(std::size_t block) const {
        const KvHop* const hop = hops_.first_with(block);
        return hop == nullptr ? "" : std::string(hop->source);
    }

    port::KvSource handover_;
    kv::TierSpeed near_{std::chrono::microseconds(100), 1e9};
    kv::TierSpeed far_{std::chrono::microseconds(500), 1e8};
    KvHops hops_{5};
};

TEST_F(KvHopsTest, ABlockComesFromTheFirstThatHasIt) {
    EXPECT_EQ(source(0), "peer");
    EXPECT_EQ(source(1), "dram");
    EXPECT_EQ(source(2), "node");
    EXPECT_EQ(source(4), "");
}

TEST_F(KvHopsTest, TheyAreAskedInTheirOrder) {
    for (const char* source : {"peer", "dram", "node"}) {
        const KvHop* const hop = hops_.next();
        ASSERT_NE(hop, nullptr);
        EXPECT_EQ(hop->source, source);
        EXPECT_EQ(&hops_.present(), hop);
    }
    EXPECT_EQ(hops_.next(), nullptr);
    EXPECT_EQ(hops_.next(), nullptr);
}

TEST_F(KvHopsTest, EachPlaceIsPredictedToLoadWhatItIsTheFirstToHave) {
    const Parts blocks{1, 2, 3};
    EXPECT_EQ(hops_.load_time(blocks, 1'000'000),
              near_.predict(1'000'000) + far_.predict(2'000'000));
    EXPECT_EQ(hops_.load_time({}, 1'000'000), std::chrono::nanoseconds(0));
}

TEST_F(KvHopsTest, WhatIsForgottenNobodyHas) {
    hops_.forget(Parts{1, 3});
    EXPECT_EQ(source(0), "peer");
    EXPECT_EQ(source(1), "");
    EXPECT_EQ(source(2), "node");
    EXPECT_EQ(source(3), "");
}

TEST_F(KvHopsTest, ASpeedIsStaleOnlyOfWhoHasSomethingForEverybody) {
    const steady_clock::time_point now{std::chrono::hours(1)};
    near_.loaded(1'000'000, std::chrono::milliseconds(1), now);
    EXPECT_TRUE(hops_.speed_is_stale(now));  // The node's.
    hops_.forget(Parts{1, 2, 3});
    EXPECT_FALSE(hops_.speed_is_stale(now));
    EXPECT_TRUE(hops_.speed_is_stale(now + std::chrono::hours(1)));  // Memory's.
    hops_.forget(Parts{0});
    EXPECT_FALSE(hops_.speed_is_stale(now + std::chrono::hours(1)));
}

}  // namespace
}  // namespace sluice::worker
