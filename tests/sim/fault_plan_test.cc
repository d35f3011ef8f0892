#include "sim/fault_plan.h"

#include <gtest/gtest.h>

namespace sluice::sim {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t kWorkers = 4;

Result<std::vector<Fault>> parse(std::string_view text, std::uint64_t seed = 1) {
    return parse_faults(text, "faults.toml", kWorkers, seed);
}

TEST(FaultPlanTest, FaultsAreReadInOrderOfTime) {
    const auto faults = parse(R"(
        [[fault]]
        at = "2m"
        kind = "slow"
        worker = 3
        for = "10s"
        factor = 4.5
        [[fault]]
        at = "1m"
        kind = "cancel"
        share = 0.9
    )");
    ASSERT_TRUE(faults.has_value()) << faults.error().to_string();
    ASSERT_EQ(faults->size(), 2u);
    EXPECT_EQ((*faults)[0], (Fault{.at = seconds(60), .kind = Fault::Kind::kCancel, .share = 0.9}));
    EXPECT_EQ((*faults)[1], (Fault{.at = seconds(120),
                                   .kind = Fault::Kind::kSlow,
                                   .worker = 3,
                                   .duration = seconds(10),
                                   .factor = 4.5}));
}

TEST(FaultPlanTest, AnyWorkerIsDrawnByTheSeed) {
    std::string text;
    for (int i = 0; i < 50; ++i)
        text += "[[fault]]\nat = \"1s\"\nkind = \"crash\"\nworker = \"any\"\nfor = \"1s\"\n";
    EXPECT_EQ(*parse(text, 1), *parse(text, 1));
    EXPECT_NE(*parse(text, 1), *parse(text, 2));
}

TEST(FaultPlanTest, MistakesAreToldWithTheirLine) {
    const auto place = [](std::string_view text) {
        const auto faults = parse(text);
        return faults ? "none" : faults.error().place();
    };
    EXPECT_EQ(place("[[fault]]\nat = \"1s\"\nkind = \"crush\"\nworker = 0\nfor = \"1s\"\n"),
              "faults.toml:3");
    EXPECT_EQ(place("[[fault]]\nat = \"1s\"\nkind = \"crash\"\nworker = 4\nfor = \"1s\"\n"),
              "faults.toml:4");
    EXPECT_EQ(place("[[fault]]\nat = \"soon\"\nkind = \"crash\"\nworker = 0\nfor = \"1s\"\n"),
              "faults.toml:2");
    EXPECT_EQ(place("[[fault]]\nat = \"1s\"\nkind = \"cancel\"\nshare = 1.5\n"), "faults.toml:4");
    EXPECT_EQ(place("[[fault]]\nat = \"1s\"\nkind = \"cancel\"\nworkers = 1\n"), "faults.toml:4");
    EXPECT_EQ(place("[[fault]]\nat = \"1s\"\nkind = \"stall\"\nworker = 1\n"), "faults.toml:1");
    EXPECT_EQ(place("[[fault\n"), "faults.toml:1");
}

TEST(FaultPlanTest, ANearNameIsOffered) {
    const auto faults =
        parse("[[fault]]\nat = \"1s\"\nkind = \"crush\"\nworker = 0\nfor = \"1s\"\n");
    ASSERT_FALSE(faults.has_value());
    EXPECT_NE(faults.error().message().find("did you mean 'crash'"), std::string::npos);
}

}  // namespace
}  // namespace sluice::sim
