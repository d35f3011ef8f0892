#include "traffic/plan_check.h"

#include <gmock/gmock.h>

namespace sluice::traffic {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kPools = {"stable", "candidate", "other"};

constexpr std::string_view kGood = R"([plan]
stable = "stable"
salt = "s"
[[plan.split]]
pool = "candidate"
weight = 0.05
lease = "10m"
[[plan.shadow]]
pool = "candidate"
share = 0.2
max_concurrent = 8
[[plan.guard]]
pool = "candidate"
metric = "ttft_p95"
max_ratio = 1.3
min_samples = 200
window = "5m"
)";

Plan good() { return *read_plan(kGood, "f.toml", kPools); }

/// "place: message" of every mistake in the plan's tables.
std::vector<std::string> mistakes(const std::string& tables,
                                  std::string_view head = "[plan]\nstable = \"stable\"\n") {
    const auto plan = read_plan(std::string(head) + tables, "f.toml", kPools);
    if (plan) return {};
    std::vector<std::string> lines;
    for (const Error& error : plan.error()) lines.push_back(error.to_string());
    return lines;
}

std::string split(std::string_view rest) {
    return "[[plan.split]]\npool = \"candidate\"\n" + std::string(rest);
}
std::string guard(std::string_view rest) {
    return split("weight = 0.1\nlease = \"1m\"\n") + "[[plan.guard]]\npool = \"candidate\"\n" +
           std::string(rest);
}

TEST(PlanCheckTest, APlanIsReadAsItIsWritten) {
    const Plan plan = good();
    EXPECT_EQ(plan.stable, "stable");
    EXPECT_EQ(plan.salt, "s");
    EXPECT_THAT(plan.splits, ElementsAre(Split{"candidate", 0.05, std::chrono::minutes(10)}));
    EXPECT_THAT(plan.shadows, ElementsAre(Shadow{"candidate", 0.2, 8}));
    EXPECT_THAT(plan.guards, ElementsAre(Guard{"candidate", GuardMetric::kTtftP95, std::nullopt,
                                               1.3, 200, std::chrono::minutes(5)}));
}

TEST(PlanCheckTest, WhatAPlanIsWrittenAsReadsBackEqual) {
    Plan plan = good();
    plan.guards.push_back({"candidate", GuardMetric::kErrorRate, 0.01, std::nullopt, 50,
                           std::chrono::milliseconds(90'500)});
    plan.splits.front().weight = 1.0 / 3.0;
    plan.salt = "a \"quoted\" \\ salt";
    EXPECT_EQ(read_plan(to_toml(plan), "f.toml", kPools), plan);
}

TEST(PlanCheckTest, TheOnlyPoolNeedNotBeNamed) {
    const std::vector<std::string> one = {"alone"};
    const auto plan = read_plan("[plan]\n", "f.toml", one);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->stable, "alone");
    EXPECT_THAT(mistakes("", "[plan]\n"),
                ElementsAre("plan: plan.stable must name the pool that answers"));
}

TEST(PlanCheckTest, OtherTablesOfTheFileAreNotLookedAt) {
    EXPECT_TRUE(read_plan("[gateway]\nlisten = 5\n" + std::string(kGood), "f.toml", kPools));
    EXPECT_FALSE(read_plan("[gateway]\n", "f.toml", kPools));
}

TEST(PlanCheckTest, AnUnknownPoolIsToldWithItsLineAndTheNearestName) {
    EXPECT_THAT(
        mistakes("", "[plan]\nstable = \"stabel\"\n"),
        ElementsAre("f.toml:2: plan.stable names no pool: 'stabel'; did you mean 'stable'?"));
    EXPECT_THAT(mistakes("[[plan.split]]\npool = \"candidat\"\nweight = 0.1\nlease = \"1m\"\n"),
                ElementsAre("f.toml:4: plan.split.pool names no pool: 'candidat'; did you mean "
                            "'candidate'?"));
    EXPECT_THAT(mistakes("[[plan.shadow]]\npool = \"x\"\nshare = 0.5\n"),
                ElementsAre("f.toml:4: plan.shadow.pool names no pool: 'x'"));
    EXPECT_THAT(mistakes("[[plan.split]]\nweight = 0.1\nlease = \"1m\"\n").front(),
                HasSubstr("must name a pool"));
}

TEST(PlanCheckTest, AnUnknownKeyIsAMistake) {
    EXPECT_THAT(mistakes(split("weight = 0.1\nlease = \"1m\"\nlaese = 1\n")).front(),
                HasSubstr("f.toml:7"));
}

TEST(PlanCheckTest, WeightsAreSharesOfOneWhole) {
    EXPECT_THAT(mistakes(split("weight = 0.0\nlease = \"1m\"\n")),
                ElementsAre("f.toml:5: plan.split.weight is 0, but must be above 0 and at most 1"));
    EXPECT_THAT(mistakes(split("weight = 1.5\nlease = \"1m\"\n")).front(), HasSubstr("at most 1"));
    EXPECT_THAT(mistakes(split("lease = \"1m\"\n")),
                ElementsAre("f.toml:3: plan.split.weight must be given"));
    const std::string two = split("weight = 0.7\nlease = \"1m\"\n") +
                            "[[plan.split]]\npool = \"other\"\nweight = 0.4\nlease = \"1m\"\n";
    EXPECT_THAT(mistakes(two).front(), HasSubstr("f.toml:9: the weights up to here are 1.1"));
}

TEST(PlanCheckTest, AWeightWithoutALeaseIsRefused) {
    EXPECT_THAT(mistakes(split("weight = 0.1\n")).front(),
                HasSubstr("f.toml:3: plan.split.lease must be given"));
    EXPECT_THAT(mistakes(split("weight = 0.1\nlease = \"8d\"\n")),
                ElementsAre("f.toml:6: plan.split.lease is 8d, but must be from 1s to 7d"));
    EXPECT_THAT(mistakes(split("weight = 0.1\nlease = \"10\"\n")).front(), HasSubstr("f.toml:6"));
}

TEST(PlanCheckTest, ThePoolThatAnswersIsNotSplitOffAndNobodyIsTwice) {
    EXPECT_THAT(mistakes("[[plan.split]]\npool = \"stable\"\nweight = 0.1\nlease = \"1m\"\n"),
                ElementsAre(HasSubstr("f.toml:4: plan.split.pool is the stable pool")));
    const std::string once = split("weight = 0.1\nlease = \"1m\"\n");
    EXPECT_THAT(mistakes(once + once), ElementsAre("f.toml:8: plan.split has 'candidate' twice"));
    const std::string shadow = "[[plan.shadow]]\npool = \"other\"\nshare = 0.1\n";
    EXPECT_THAT(mistakes(shadow + shadow), ElementsAre("f.toml:7: plan.shadow has 'other' twice"));
}

TEST(PlanCheckTest, TheStablePoolMayShadowItself) {
    EXPECT_THAT(mistakes("[[plan.shadow]]\npool = \"stable\"\nshare = 0.1\n"), IsEmpty());
}

TEST(PlanCheckTest, AShareOutsideItsRangeIsRefused) {
    EXPECT_THAT(mistakes("[[plan.shadow]]\npool = \"other\"\nshare = 1.01\n").front(),
                HasSubstr("f.toml:5: plan.shadow.share is 1.01"));
    EXPECT_THAT(mistakes("[[plan.shadow]]\npool = \"other\"\n"),
                ElementsAre("f.toml:3: plan.shadow.share must be given"));
    EXPECT_THAT(
        mistakes("[[plan.shadow]]\npool = \"other\"\nshare = 1\nmax_concurrent = 0\n").front(),
        HasSubstr("f.toml:6"));
}

TEST(PlanCheckTest, AnUnknownMetricIsToldWithTheNearestName) {
    EXPECT_THAT(mistakes(guard("metric = \"ttft_p96\"\nmax = 1\nmin_samples = 10\n")),
                ElementsAre("f.toml:9: plan.guard.metric is no metric: 'ttft_p96'; did you mean "
                            "'ttft_p95'?"));
}

TEST(PlanCheckTest, AGuardHasOneLimitThatMakesSense) {
    const std::string rest = "min_samples = 10\nwindow = \"1m\"\n";
    EXPECT_THAT(mistakes(guard("metric = \"error_rate\"\n" + rest)).front(),
                HasSubstr("needs one limit"));
    EXPECT_THAT(
        mistakes(guard("metric = \"error_rate\"\nmax = 0.1\nmax_ratio = 2\n" + rest)).front(),
        HasSubstr("f.toml:10: plan.guard needs one limit"));
    EXPECT_THAT(mistakes(guard("metric = \"error_rate\"\nmax_ratio = 0.9\n" + rest)).front(),
                HasSubstr("must be 1 or more"));
    EXPECT_THAT(mistakes(guard("metric = \"error_rate\"\nmax = 1\n" + rest)).front(),
                HasSubstr("f.toml:10"));
    EXPECT_THAT(mistakes(guard("metric = \"ttft_p50\"\nmax = 0\n" + rest)).front(),
                HasSubstr("above 0"));
    EXPECT_THAT(mistakes(guard("metric = \"ttft_p50\"\nmax = 2.5\n" + rest)), IsEmpty());
}

TEST(PlanCheckTest, AGuardWithoutMinSamplesOrWithAStrangeWindowIsRefused) {
    EXPECT_THAT(mistakes(guard("metric = \"error_rate\"\nmax = 0.1\n")).front(),
                HasSubstr("f.toml:7: plan.guard.min_samples must be given"));
    EXPECT_THAT(
        mistakes(guard("metric = \"error_rate\"\nmax = 0.1\nmin_samples = 1\nwindow = \"2d\"\n")),
        ElementsAre("f.toml:12: plan.guard.window is 2d, but must be from 1s to 1d"));
}

TEST(PlanCheckTest, AGuardOverWhatIsNeverMeasuredIsRefused) {
    const std::string rest = "metric = \"error_rate\"\nmax = 0.1\nmin_samples = 1\n";
    EXPECT_THAT(mistakes("[[plan.guard]]\npool = \"other\"\n" + rest),
                ElementsAre("f.toml:4: plan.guard.pool 'other' gets no traffic by this plan"));
    EXPECT_THAT(mistakes("[[plan.guard]]\npool = \"stable\"\n" + rest).front(),
                HasSubstr("nothing to roll back to"));
    EXPECT_THAT(mistakes(guard("metric = \"differs_share\"\nmax = 0.1\nmin_samples = 1\n")).front(),
                HasSubstr("needs a [[plan.shadow]] of 'candidate'"));
    const std::string shadow = "[[plan.shadow]]\npool = \"candidate\"\nshare = 0.5\n";
    const std::string ratio = "metric = \"differs_share\"\nmax_ratio = 2\nmin_samples = 1\n";
    EXPECT_THAT(mistakes(shadow + guard(ratio)).front(), HasSubstr("measure the noise"));
}

TEST(PlanCheckTest, EveryMistakeIsToldAtOnce) {
    EXPECT_EQ(mistakes("[[plan.split]]\npool = \"x\"\n[[plan.shadow]]\npool = \"y\"\n").size(), 5U);
}

// ---- Headroom -------------------------------------------------------------------------------------

std::vector<PoolFacts> facts(std::optional<std::uint64_t> capacity, std::uint32_t ready = 1) {
    return {{"stable", ready, capacity, 30}, {"candidate", 1, 64, 40}};
}

TEST(PlanCheckTest, APlanThatLeavesStableNeedsAWayBack) {
    EXPECT_FALSE(refuse_without_headroom(good(), facts(70), false));
    const auto short_of = refuse_without_headroom(good(), facts(69), true);
    ASSERT_TRUE(short_of);
    EXPECT_EQ(short_of->place(), "plan.stable");
    EXPECT_THAT(short_of->message(), HasSubstr("can hold 69 requests, but 70 are running"));
    EXPECT_THAT(refuse_without_headroom(good(), facts(70, 0), true)->message(),
                HasSubstr("no worker that is ready"));
}

TEST(PlanCheckTest, AnUnknownCapacityNeedsForce) {
    EXPECT_THAT(refuse_without_headroom(good(), facts(std::nullopt), false)->message(),
                HasSubstr("--force"));
    EXPECT_FALSE(refuse_without_headroom(good(), facts(std::nullopt), true));
}

TEST(PlanCheckTest, APlanThatStaysOnStableNeedsNothing) {
    Plan plan = good();
    plan.splits.clear();
    EXPECT_FALSE(refuse_without_headroom(plan, facts(std::nullopt, 0), false));
}

// ---- The plan as a value --------------------------------------------------------------------------

TEST(PlanTest, EqualPlansHaveOneDigestAndNoDifference) {
    EXPECT_EQ(digest(good()), digest(good()));
    EXPECT_EQ(digest(good()).size(), 16U);
    EXPECT_THAT(difference(good(), good()), IsEmpty());
}

TEST(PlanTest, ADifferenceIsReadable) {
    Plan next = good();
    next.splits.front().weight = 0.1;
    next.shadows.clear();
    EXPECT_NE(digest(next), digest(good()));
    EXPECT_THAT(difference(good(), next),
                ElementsAre("- split candidate weight 0.05 lease 10m",
                            "+ split candidate weight 0.1 lease 10m",
                            "- shadow candidate share 0.2 max_concurrent 8"));
    next = good();
    next.stable = "other";
    EXPECT_THAT(difference(good(), next), ElementsAre("stable: stable -> other"));
}

TEST(PlanTest, EveryMetricHasAName) {
    for (const std::string_view name : guard_metric_names())
        EXPECT_EQ(to_string(*parse_guard_metric(name)), name);
    EXPECT_FALSE(parse_guard_metric("ttft"));
}

}  // namespace
}  // namespace sluice::traffic
