#include "base/latency_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(LatencySketchTest, QuantilesAreWithinOnePercent) {
    std::mt19937 random(1);
    std::lognormal_distribution<double> durations(9.0, 1.5);  // Around 8 ms.
    LatencySketch sketch;
    std::vector<microseconds> all;
    for (int i = 0; i < 10'000; ++i) {
        all.emplace_back(100 + static_cast<std::int64_t>(durations(random)));
        sketch.add(all.back());
    }
    std::ranges::sort(all);
    for (const double share : {0.01, 0.5, 0.9, 0.99, 1.0}) {
        const auto exact =
            static_cast<double>(all[static_cast<std::size_t>(share * 10'000) - 1].count());
        EXPECT_NEAR(static_cast<double>(sketch.quantile(share)->count()) / exact, 1.0, 0.012)
            << share;
    }
    EXPECT_EQ(sketch.max(), all.back());
    EXPECT_EQ(sketch.count(), 10'000U);
}

TEST(LatencySketchTest, TokensThatCameTogetherShareTheirGap) {
    LatencySketch sketch;
    sketch.add(milliseconds(40), 4);
    EXPECT_EQ(sketch.count(), 4U);
    EXPECT_EQ(sketch.max(), milliseconds(10));
}

TEST(LatencySketchTest, MergedIsTheSameAsAddedTogether) {
    LatencySketch together;
    LatencySketch left;
    LatencySketch right;
    for (int i = 1; i <= 100; ++i) {
        together.add(milliseconds(i));
        (i % 3 == 0 ? left : right).add(milliseconds(i));
    }
    left.merge(right);
    EXPECT_EQ(left, together);
    EXPECT_EQ(LatencySketch::restore(together.buckets(), together.max()), together);
}

TEST(LatencySketchTest, EdgesAreHarmless) {
    LatencySketch sketch;
    EXPECT_FALSE(sketch.quantile(0.5).has_value());
    sketch.add(std::chrono::nanoseconds(-5));
    sketch.add(milliseconds(1), 0);
    sketch.add(std::chrono::hours(100'000));
    EXPECT_EQ(sketch.count(), 2U);
}

}  // namespace
}  // namespace sluice
