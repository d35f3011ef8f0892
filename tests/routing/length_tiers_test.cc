#include "routing/length_tiers.h"

#include <gtest/gtest.h>

namespace sluice::routing {
namespace {

using Firsts = std::array<std::uint32_t, LengthTiers::kTiers>;

TEST(LengthTiersTest, TheUpperEndBelongsToTheTier) {
    EXPECT_EQ(LengthTiers::tier_of(0), 0);
    EXPECT_EQ(LengthTiers::tier_of(16 * 1024), 0);
    EXPECT_EQ(LengthTiers::tier_of(16 * 1024 + 1), 1);
    EXPECT_EQ(LengthTiers::tier_of(64 * 1024 + 1), 2);
    EXPECT_EQ(LengthTiers::tier_of(1024 * 1024), 3);
}

TEST(LengthTiersTest, ShorterTiersKeepWorkersByTheirShareAndGiveThemUpWhenNobodyComes) {
    LengthTiers tiers;
    Time now{};
    EXPECT_EQ(tiers.kept_for_shorter(8, now), Firsts{});
    for (int i = 0; i < 50; ++i) tiers.on_pick(10'000, 10'000, now);
    for (int i = 0; i < 5; ++i) tiers.on_pick(100'000, 100'000, now);
    EXPECT_EQ(tiers.kept_for_shorter(8, now), (Firsts{0, 4, 4, 7}));
    now += std::chrono::minutes(10);
    EXPECT_EQ(tiers.kept_for_shorter(8, now), Firsts{});
}

TEST(LengthTiersTest, AFewShortRequestsKeepOneWorkerAndNobodyKeepsAll) {
    LengthTiers tiers;
    const Time now{};
    tiers.on_pick(100, 100, now);
    for (int i = 0; i < 50; ++i) tiers.on_pick(500'000, 500'000, now);
    EXPECT_EQ(tiers.kept_for_shorter(8, now), (Firsts{0, 1, 1, 1}));
    for (int i = 0; i < 10'000; ++i) tiers.on_pick(16'000, 16'000, now);
    EXPECT_EQ(tiers.kept_for_shorter(8, now)[3], 6U);
    EXPECT_EQ(tiers.kept_for_shorter(2, now)[3], 1U);
    EXPECT_EQ(tiers.kept_for_shorter(1, now), Firsts{});
    EXPECT_EQ(tiers.kept_for_shorter(0, now), Firsts{});
}

}  // namespace
}  // namespace sluice::routing
