#include "traffic/split_table.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

namespace sluice::traffic {
namespace {

constexpr int kConversations = 20'000;

using Owners = std::vector<std::optional<std::size_t>>;

Owners owners(const std::vector<double>& weights, std::string_view salt = "") {
    std::vector<Split> splits;
    for (const double weight : weights) splits.push_back({"p", weight, std::chrono::minutes(1)});
    const SplitTable table(splits);
    Owners owners;
    for (int i = 0; i < kConversations; ++i)
        owners.push_back(table.owner(place_of(fmt::format("user-{}", i), salt, "split")));
    return owners;
}

double share(const Owners& owners, std::optional<std::size_t> of) {
    return static_cast<double>(std::ranges::count(owners, of)) / kConversations;
}

TEST(SplitTableTest, SharesAreTheWeights) {
    // Five standard deviations of a share of 20,000 are 0.018 at most.
    for (const auto& weights : std::vector<std::vector<double>>{
             {0.05}, {1.0}, {0.3, 0.2}, {0.6, 0.05}, {0.25, 0.25, 0.25, 0.25}, {0.4, 0.4, 0.1}}) {
        const Owners all = owners(weights);
        double left = 1.0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            EXPECT_NEAR(share(all, i), weights[i], 0.018);
            left -= weights[i];
        }
        EXPECT_NEAR(share(all, std::nullopt), left, 0.018);
    }
}

TEST(SplitTableTest, AConversationStaysWhereItIs) {
    EXPECT_EQ(owners({0.3, 0.1}), owners({0.3, 0.1}));
}

TEST(SplitTableTest, AGrowingWeightOnlyTakesFromStable) {
    const std::vector<std::vector<double>> steps = {
        {0.0, 0.1}, {0.05, 0.1}, {0.3, 0.1}, {0.6, 0.1}, {0.9, 0.1}};
    for (std::size_t i = 1; i < steps.size(); ++i) {
        const Owners before = owners(steps[i - 1]);
        const Owners after = owners(steps[i]);
        int moved = 0;
        for (int c = 0; c < kConversations; ++c) {
            if (before[c] == after[c]) continue;
            ++moved;
            EXPECT_EQ(before[c], std::nullopt);
            EXPECT_EQ(after[c], std::optional<std::size_t>(0));
        }
        EXPECT_GT(moved, 0);
    }
}

TEST(SplitTableTest, ANewSplitAtTheEndMovesNobodyElse) {
    const Owners before = owners({0.2, 0.2});
    const Owners after = owners({0.2, 0.2, 0.2});
    for (int c = 0; c < kConversations; ++c)
        EXPECT_TRUE(before[c] == after[c] ||
                    (!before[c] && after[c] == std::optional<std::size_t>(2)));
}

TEST(SplitTableTest, AnotherSaltDealsAnew) {
    const Owners one = owners({0.5}, "one");
    const Owners two = owners({0.5}, "two");
    int same = 0;
    for (int c = 0; c < kConversations; ++c) same += one[c] == two[c] ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(same) / kConversations, 0.5, 0.018);
}

TEST(SplitTableTest, EveryUnitHasOneOwnerAtMost) {
    const SplitTable table({{"a", 0.5, {}}, {"b", 0.3, {}}, {"c", 0.2, {}}});
    std::array<int, 3> count{};
    for (std::uint32_t unit = 0; unit < SplitTable::kUnits; ++unit)
        if (const auto owner = table.owner(unit)) ++count[*owner];
    EXPECT_THAT(count, testing::ElementsAre(500'000, 300'000, 200'000));
}

TEST(SplitTableTest, DrawsForOtherUsesAreIndependent) {
    int both = 0;
    for (int i = 0; i < kConversations; ++i) {
        const std::string name = fmt::format("c{}", i);
        both += place_of(name, "", "split") < 500'000 && place_of(name, "", "shadow") < 500'000;
    }
    EXPECT_NEAR(static_cast<double>(both) / kConversations, 0.25, 0.018);
}

}  // namespace
}  // namespace sluice::traffic
