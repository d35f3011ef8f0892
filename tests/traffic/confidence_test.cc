#include "traffic/confidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sluice::traffic {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

TEST(ConfidenceTest, TheBoundsAreThoseOfTheFormula) {
    // Without an event, kl(0, q) = -ln(1 - q), so q = 1 - alpha^(1/n).
    EXPECT_NEAR(upper_bound({0, 200}, 1e-3), 1.0 - std::pow(1e-3, 1.0 / 200), 1e-9);
    EXPECT_EQ(lower_bound({0, 200}, 1e-3), 0.0);
    EXPECT_NEAR(lower_bound({200, 200}, 1e-3), std::pow(1e-3, 1.0 / 200), 1e-9);
    EXPECT_EQ(upper_bound({200, 200}, 1e-3), 1.0);
    EXPECT_EQ(lower_bound({}, 0.1), 0.0);
    EXPECT_EQ(upper_bound({}, 0.1), 1.0);
}

TEST(ConfidenceTest, TheTruthIsOutsideAsSeldomAsPromised) {
    // 20,000 experiments of 300 coins; the bound promises at most 1 % outside, and may be stricter.
    std::mt19937_64 random(7);
    std::binomial_distribution<int> coins(300, 0.1);
    int outside = 0;
    for (int i = 0; i < 20'000; ++i) {
        const Tally tally{.events = static_cast<double>(coins(random)), .trials = 300};
        outside += lower_bound(tally, 0.01) > 0.1 ? 1 : 0;
    }
    EXPECT_LE(outside, 200);
    EXPECT_GE(outside, 10) << "the bound is too loose to be of use";
}

TEST(ConfidenceTest, MoreTrialsBringTheBoundsTogether) {
    const auto width = [](double trials) {
        const Tally tally{.events = 0.1 * trials, .trials = trials};
        return upper_bound(tally, 1e-3) - lower_bound(tally, 1e-3);
    };
    EXPECT_GT(width(100), width(1'000));
    EXPECT_GT(width(1'000), width(10'000));
}

TEST(ConfidenceTest, IndependentObservationsCountInFull) {
    std::mt19937_64 random(11);
    std::bernoulli_distribution event(0.2);
    ClusteredTally tally;
    for (int i = 0; i < 10'000; ++i)
        tally.add(Clock::time_point(milliseconds(50 * i)), event(random));
    EXPECT_LT(tally.design_effect(), 1.3);
    EXPECT_GT(tally.effective().trials, 7'500.0);
}

TEST(ConfidenceTest, ThatWhichHappensTogetherCountsOnce) {
    // Seconds of twenty requests each: in every fifth second all of them fail.
    ClusteredTally tally;
    for (int second = 0; second < 200; ++second)
        for (int i = 0; i < 20; ++i)
            tally.add(Clock::time_point(milliseconds(1'000 * second + 50 * i)), second % 5 == 0);
    EXPECT_NEAR(tally.design_effect(), 20.0, 1.0);
    EXPECT_NEAR(tally.effective().trials, 200.0, 10.0);
    EXPECT_NEAR(tally.effective().share(), 0.2, 1e-9);
}

TEST(ConfidenceTest, NothingSeenIsNoEffect) {
    EXPECT_EQ(ClusteredTally().design_effect(), 1.0);
    EXPECT_EQ(ClusteredTally().effective().trials, 0.0);
}

}  // namespace
}  // namespace sluice::traffic
