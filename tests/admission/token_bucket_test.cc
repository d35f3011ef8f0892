#include "admission/token_bucket.h"

namespace sluice::admission {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{};

TEST(TokenBucketTest, AMinutesWorthMayComeAtOnceAndNoMore) {
    TokenBucket bucket(60);
    for (int i = 0; i < 60; ++i) {
        ASSERT_EQ(bucket.wait(1, kStart), 0ns);
        bucket.take(1, kStart);
    }
    EXPECT_EQ(bucket.wait(1, kStart), 1s);
    EXPECT_EQ(bucket.wait(1, kStart + 999ms), 1ms);
    EXPECT_EQ(bucket.wait(1, kStart + 1s), 0ns);
}

TEST(TokenBucketTest, WaitingAsLongAsToldIsEnoughForAnyAmount) {
    TokenBucket bucket(7);
    Instant now = kStart;
    for (int i = 0; i < 1000; ++i) {
        now += bucket.wait(3, now);
        ASSERT_EQ(bucket.wait(3, now), 0ns);
        bucket.take(3, now);
    }
    // 3,000 units at 7 a minute, less the 7 there were at first.
    EXPECT_NEAR(std::chrono::duration<double>(now - kStart).count(), (3000.0 - 7) / 7 * 60, 0.01);
}

TEST(TokenBucketTest, WhatCostMoreThanReservedDelaysWhatFollows) {
    TokenBucket bucket(60);
    bucket.take(60, kStart);
    bucket.take(30, kStart);  // Settled: it was 90.
    EXPECT_EQ(bucket.wait(1, kStart), 31s);
    bucket.take(-10, kStart);
    EXPECT_EQ(bucket.wait(1, kStart), 21s);
}

TEST(TokenBucketTest, ARequestAboveTheCapacityPassesOnAFullBucket) {
    TokenBucket bucket(100);
    EXPECT_EQ(bucket.wait(1'000, kStart), 0ns);
    bucket.take(1'000, kStart);
    EXPECT_EQ(bucket.wait(1, kStart),
              std::chrono::ceil<Duration>(std::chrono::duration<double>(540.6)));
}

TEST(TokenBucketTest, GivingBackNeverMakesMoreThanAMinutesWorth) {
    TokenBucket bucket(60);
    bucket.take(-1'000, kStart);
    bucket.take(60, kStart);
    EXPECT_EQ(bucket.wait(1, kStart), 1s);
}

TEST(TokenBucketTest, AClockThatStepsBackNeitherGivesNorTakes) {
    TokenBucket bucket(60);
    bucket.take(60, kStart + 1h);
    EXPECT_EQ(bucket.wait(1, kStart), 1s);
    bucket.take(0, kStart);
    EXPECT_EQ(bucket.wait(1, kStart + 1h), 1s);
}

TEST(TokenBucketTest, ZeroIsNoLimit) {
    TokenBucket bucket(0);
    bucket.take(1e12, kStart);
    EXPECT_EQ(bucket.wait(1e12, kStart), 0ns);
}

}  // namespace
}  // namespace sluice::admission
