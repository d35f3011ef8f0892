#include "routing/health.h"

#include <gtest/gtest.h>

namespace sluice::routing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HealthTest : public testing::Test {
protected:
    HealthTest() {
        health.on_ready(now);
        now += seconds(60);
    }
    /// A request that went so, one after the other.
    void comes(LegResult result) {
        const Time began = now;
        health.on_pick(now);
        now += milliseconds(1);
        health.on_result(result, began, now);
    }
    [[nodiscard]] bool takes() const { return health.takes_requests(now); }
    [[nodiscard]] Health::Breaker breaker() const { return health.breaker(now); }

    Time now = Time{} + std::chrono::hours(1);
    Health health;
};

TEST_F(HealthTest, FiftyBadRequestsLeaveTheBreakerClosed) {
    for (int i = 0; i < 50; ++i) comes(LegResult::kClientError);
    EXPECT_EQ(breaker(), Health::Breaker::kClosed);
    EXPECT_EQ(health.pressure(now), 1.0);
}

TEST_F(HealthTest, AWorkerThatIsFullForFiveSecondsKeepsItsPlaceWithASmallerShare) {
    for (int i = 0; i < 500; ++i) {
        comes(LegResult::kFull);
        now += milliseconds(9);
        ASSERT_TRUE(takes());
    }
    EXPECT_LT(health.pressure(now), 0.2);
    EXPECT_GE(health.pressure(now), 0.1);
    const double before = health.pressure(now);
    comes(LegResult::kSuccess);
    EXPECT_GT(health.pressure(now), before);
    now += seconds(60);
    EXPECT_EQ(health.pressure(now), 1.0);
}

TEST_F(HealthTest, FailuresWithoutASuccessBetweenTakeItOut) {
    for (int i = 0; i < 4; ++i) comes(LegResult::kFailed);
    comes(LegResult::kSuccess);
    for (int i = 0; i < 4; ++i) comes(LegResult::kFailed);
    EXPECT_TRUE(takes());
    comes(LegResult::kFailed);
    EXPECT_EQ(breaker(), Health::Breaker::kOpen);
    EXPECT_FALSE(takes());
}

TEST_F(HealthTest, LegsThatDieTogetherAreOneFailure) {
    const Time began = now;
    now += seconds(1);
    for (int i = 0; i < 100; ++i) health.on_result(LegResult::kFailed, began, now);
    EXPECT_TRUE(takes());
}

TEST_F(HealthTest, RefusingWhatIsRightOrStallingTakesItOutAtOnce) {
    comes(LegResult::kMisconfigured);
    EXPECT_FALSE(takes());
    health.on_restart();
    EXPECT_TRUE(takes());
    comes(LegResult::kStalled);
    EXPECT_FALSE(takes());
}

TEST_F(HealthTest, AfterARestOneRequestIsTriedAndDecides) {
    comes(LegResult::kStalled);
    now = health.open_until();
    EXPECT_EQ(breaker(), Health::Breaker::kHalfOpen);
    EXPECT_TRUE(takes());
    health.on_pick(now);
    EXPECT_FALSE(takes());
    const Time trial = now;
    now += seconds(1);
    health.on_result(LegResult::kFailed, trial, now);
    EXPECT_FALSE(takes());
    EXPECT_EQ(health.open_until() - now, seconds(4));  // Twice as long as before.
    now = health.open_until();
    comes(LegResult::kSuccess);
    EXPECT_EQ(breaker(), Health::Breaker::kClosed);
    EXPECT_LT(health.ramp(now), 0.5);
}

TEST_F(HealthTest, ATrialThatSaysNothingIsNotWaitedForForever) {
    comes(LegResult::kStalled);
    now = health.open_until();
    health.on_pick(now);
    EXPECT_FALSE(takes());
    now += seconds(10);
    EXPECT_TRUE(takes());
}

TEST_F(HealthTest, RestsGrowNoLongerThanAMinute) {
    for (int i = 0; i < 20; ++i) {
        comes(LegResult::kStalled);
        ASSERT_LE(health.open_until() - now, seconds(60));
        now = health.open_until();
    }
}

TEST_F(HealthTest, TheShareOfANewWorkerGrowsInTenSeconds) {
    health.on_ready(now);
    EXPECT_DOUBLE_EQ(health.ramp(now), 0.25);
    now += seconds(5);
    EXPECT_NEAR(health.ramp(now), 0.625, 1e-9);
    now += seconds(5);
    EXPECT_DOUBLE_EQ(health.ramp(now), 1.0);
}

}  // namespace
}  // namespace sluice::routing
