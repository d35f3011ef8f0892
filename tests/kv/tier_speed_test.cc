#include "kv/tier_speed.h"

#include <gtest/gtest.h>

namespace sluice::kv {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TierSpeed::Time kStart{};

TEST(TierSpeedTest, LearnsTheTimeOfAskingAndOfEachByte) {
    TierSpeed speed;
    for (int i = 0; i < 100; ++i) {
        speed.asked(milliseconds(4), kStart);
        speed.loaded(1'000'000, milliseconds(14), kStart);
    }
    const auto near = [](auto time, auto wanted) {
        return std::abs((time - wanted).count()) < wanted.count() / 50;
    };
    EXPECT_TRUE(near(speed.predict(2'000'000), TierSpeed::Duration(milliseconds(24))));
    EXPECT_TRUE(near(speed.round_trip(), TierSpeed::Duration(milliseconds(4))));
}

TEST(TierSpeedTest, OneSlowLoadIsNotTheEnd) {
    TierSpeed speed;
    for (int i = 0; i < 20; ++i) speed.loaded(1'000'000, milliseconds(11), kStart);
    const auto before = speed.predict(1'000'000);
    speed.loaded(1'000'000, milliseconds(100), kStart);
    EXPECT_GT(speed.predict(1'000'000), before);
    EXPECT_LT(speed.predict(1'000'000), milliseconds(50));
}

TEST(TierSpeedTest, WhatWasNotTriedForLongIsOutOfDate) {
    TierSpeed speed;
    EXPECT_TRUE(speed.stale(kStart));
    speed.loaded(1, milliseconds(1), kStart);
    EXPECT_FALSE(speed.stale(kStart + seconds(29)));
    EXPECT_TRUE(speed.stale(kStart + seconds(31)));
}

TEST(TierSpeedTest, ALoadInVainShowsHowLongAskingTakes) {
    TierSpeed speed;
    const auto before = speed.round_trip();
    speed.loaded(0, milliseconds(500), kStart);
    EXPECT_GT(speed.round_trip(), before + milliseconds(100));
    EXPECT_FALSE(speed.stale(kStart));
}

TEST(TierSpeedTest, AskingGoesOutOfDateByItself) {
    TierSpeed speed;
    EXPECT_TRUE(speed.round_trip_is_stale(kStart));
    speed.asked(milliseconds(1), kStart);
    EXPECT_FALSE(speed.round_trip_is_stale(kStart + seconds(29)));
    EXPECT_TRUE(speed.round_trip_is_stale(kStart + seconds(31)));
    EXPECT_TRUE(speed.stale(kStart));
}

}  // namespace
}  // namespace sluice::kv
