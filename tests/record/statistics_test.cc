#include "record/statistics.h"

#include <cmath>
#include <random>

namespace sluice::record {
namespace {

// Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
TEST(StatisticsTest, WilsonsIntervalIsTheOneOfTheLiterature) {
    constexpr double k95 = 1.959964;
    const Interval many = wilson_interval(81, 263, k95);
    EXPECT_NEAR(many.low, 0.2553, 5e-5);
    EXPECT_NEAR(many.high, 0.3662, 5e-5);
    const Interval none = wilson_interval(0, 20, k95);
    EXPECT_NEAR(none.low, 0.0, 1e-12);
    EXPECT_NEAR(none.high, 0.1611, 5e-5);
    const Interval nothing = wilson_interval(0, 0);
    EXPECT_EQ(nothing.low, 0.0);
    EXPECT_EQ(nothing.high, 1.0);
}

// Newcombe, "Interval estimation for the difference between independent proportions" (1998),
// table II, method 10: 56/70 and 48/80.
TEST(StatisticsTest, NewcombesIntervalIsTheOneOfTheLiterature) {
    const Interval difference = difference_interval(48, 80, 56, 70, 1.959964);
    EXPECT_NEAR(difference.low, 0.0524, 5e-5);
    EXPECT_NEAR(difference.high, 0.3339, 5e-5);
}

TEST(StatisticsTest, QuantilesAreByNearestRankAndWeight) {
    Samples samples;
    EXPECT_EQ(samples.quantile(0.5), std::nullopt);
    samples.add(30, 1);
    samples.add(10, 1);
    samples.add(20, 2);
    EXPECT_EQ(samples.quantile(0.25), 10);
    EXPECT_EQ(samples.quantile(0.5), 20);
    EXPECT_EQ(samples.quantile(0.75), 20);
    EXPECT_EQ(samples.quantile(0.76), 30);
    EXPECT_EQ(samples.quantile(1.0), 30);
    EXPECT_EQ(samples.weight(), 4U);
    EXPECT_NEAR(samples.effective_size(), 16.0 / 6.0, 1e-12);
}

TEST(StatisticsTest, TooFewSamplesBoundNoQuantile) {
    Samples samples;
    for (int i = 0; i < 8; ++i) samples.add(i, 1);
    EXPECT_EQ(samples.quantile_interval(0.5), std::nullopt);
    for (int i = 8; i < 40; ++i) samples.add(i, 1);
    EXPECT_TRUE(samples.quantile_interval(0.5).has_value());
    EXPECT_EQ(samples.quantile_interval(0.99), std::nullopt);
}

// At 95 %, the interval of the median of a skewed distribution holds the true one in about 95 of 100
// experiments.
TEST(StatisticsTest, QuantileIntervalsCoverWhatTheyClaim) {
    std::mt19937_64 random(11);
    std::lognormal_distribution<double> times(0.0, 1.0);
    int covered = 0;
    constexpr int kExperiments = 2'000;
    for (int i = 0; i < kExperiments; ++i) {
        Samples samples;
        for (int j = 0; j < 101; ++j) samples.add(times(random), 1);
        const auto interval = samples.quantile_interval(0.5, 1.96);
        ASSERT_TRUE(interval.has_value());
        covered += interval->low <= 1.0 && 1.0 <= interval->high ? 1 : 0;
    }
    EXPECT_GT(covered, kExperiments * 0.94);
    EXPECT_LT(covered, kExperiments * 0.985);
}

}  // namespace
}  // namespace sluice::record
