#include "engine/row_costs.h"

namespace sluice::engine {
namespace {

TEST(RowCostsTest, NothingIsKnownAtFirst) {
    const RowCosts costs;
    EXPECT_EQ(costs.estimate(1), 0.0);
    EXPECT_FALSE(costs.is_measured(1));
}

TEST(RowCostsTest, BetweenMeasuredNumbersItLiesBetweenAndAboveItGrowsInProportion) {
    RowCosts costs;
    costs.add(2, 1.0);
    EXPECT_EQ(costs.estimate(1), 1.0);
    EXPECT_EQ(costs.estimate(4), 2.0);
    costs.add(4, 1.4);
    EXPECT_DOUBLE_EQ(costs.estimate(3), 1.2);
    EXPECT_FALSE(costs.is_measured(3));
    EXPECT_TRUE(costs.is_measured(4));
    EXPECT_GT(costs.estimate(1'000'000), 1.4);
}

TEST(RowCostsTest, TheMeanFollowsAndOneOutlierDoesNotRuleIt) {
    RowCosts costs;
    costs.add(8, 1.0);
    costs.add(8, 1'000.0);
    EXPECT_DOUBLE_EQ(costs.estimate(8), 1.125);
    for (int i = 0; i < 100; ++i) costs.add(8, 3.0);
    EXPECT_NEAR(costs.estimate(8), 3.0, 0.01);
    for (int i = 0; i < 100; ++i) costs.add(8, 0.5);
    EXPECT_NEAR(costs.estimate(8), 0.5, 0.01);
}

TEST(RowCostsTest, EstimatesNeverFallWhereRowsGrowAndAllBucketsAreInOrder) {
    RowCosts costs;
    costs.add(1, 1.0);
    costs.add(64, 20.0);
    double last = 0;
    for (std::size_t rows = 1; rows < 600; ++rows) {
        EXPECT_GE(costs.estimate(rows), last) << rows;
        last = costs.estimate(rows);
    }
}

}  // namespace
}  // namespace sluice::engine
