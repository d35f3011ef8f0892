// Guards on a virtual clock: an equal pair is left alone for 10,000 requests, whatever the seed, and
// each planted fault is found within a number of requests that is written down here.

#include "traffic/guard_watch.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "base/limits.h"
#include "traffic/controller.h"

namespace sluice::traffic {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int kRequests = 10'000;
constexpr int kSeeds = 4;

/// How a simulated pool behaves. Its stalls are its own: for a second everything is slow together,
/// which is what makes samples of a real engine depend on each other.
struct Behaviour {
    double errors = 0.005;
    double invalid = 0.01;
    double differs = 0.03;
    double slower = 1.0;       ///< Factor on both times.
    double slow_tail = 1.0;    ///< Factor on the slowest tenth.
    double stalls = 1.0 / 60;  ///< Seconds that stall.
};

class SimulatedPool {
public:
    SimulatedPool(Behaviour behaviour, std::uint64_t seed) : behaviour_(behaviour), random_(seed) {}

    Attempt attempt(Time now) {
        const auto second = std::chrono::floor<std::chrono::seconds>(now);
        if (second != second_) {
            second_ = second;
            stalled_ = draw(behaviour_.stalls);
        }
        Attempt attempt{.failed = draw(stalled_ ? 10 * behaviour_.errors : behaviour_.errors)};
        if (attempt.failed) return attempt;
        attempt.invalid = draw(behaviour_.invalid);
        double factor = behaviour_.slower * (stalled_ ? 4.0 : 1.0);
        if (draw(0.1)) factor *= behaviour_.slow_tail;
        attempt.ttft = Seconds(0.2 * factor * std::exp(0.5 * normal_(random_)));
        attempt.tbt = Seconds(0.02 * factor * std::exp(0.2 * normal_(random_)));
        return attempt;
    }
    bool differs() { return draw(behaviour_.differs); }

private:
    bool draw(double share) { return std::bernoulli_distribution(std::min(share, 1.0))(random_); }

    Behaviour behaviour_;
    std::mt19937_64 random_;
    std::normal_distribution<double> normal_;
    std::chrono::time_point<std::chrono::steady_clock, std::chrono::seconds> second_{};
    bool stalled_ = false;
};

Plan plan_with(std::vector<Guard> guards) {
    return {.stable = "stable",
            .salt = "",
            .splits = {{"candidate", 0.5, std::chrono::hours(24)}},
            .shadows = {{"candidate", 1.0, 8}, {"stable", 1.0, 8}},
            .guards = std::move(guards)};
}

Guard ratio(GuardMetric metric, double max_ratio) {
    return {"candidate", metric, std::nullopt, max_ratio, 200, std::chrono::minutes(5)};
}
Guard most(GuardMetric metric, double max) {
    return {"candidate", metric, max, std::nullopt, 50, std::chrono::minutes(5)};
}

struct Verdict {
    int requests = 0;  ///< Until it was rolled back, or all.
    std::string reason;
};

/// 40 requests a second, each answered by one of the pools and compared on both.
Verdict simulate(std::vector<Guard> guards, const Behaviour& stable, const Behaviour& candidate,
                 std::uint64_t seed, int requests = kRequests) {
    Now now{Time(std::chrono::hours(1)), WallTime(std::chrono::hours(500'000))};
    Controller controller(Controller::fresh(plan_with(std::move(guards)), 1, now.wall), now);
    SimulatedPool good(stable, 2 * seed);
    SimulatedPool other(candidate, 2 * seed + 1);
    for (int i = 0; i < requests; ++i) {
        now.steady += milliseconds(25);
        now.wall += milliseconds(25);
        controller.on_attempt("stable", good.attempt(now.steady), now.steady);
        controller.on_attempt("candidate", other.attempt(now.steady), now.steady);
        controller.on_comparison("stable", good.differs(), now.steady);
        controller.on_comparison("candidate", other.differs(), now.steady);
        if (i % 40 != 0) continue;
        if (const auto happened = controller.tick(now); happened.rolled_back)
            return {i, happened.rolled_back->state.reason};
    }
    return {requests, ""};
}

std::vector<Guard> all_ratios(double max_ratio) {
    std::vector<Guard> guards;
    for (const std::string_view name : guard_metric_names())
        guards.push_back(ratio(*parse_guard_metric(name), max_ratio));
    return guards;
}

TEST(GuardWatchTest, AnEqualPairIsNeverRolledBack) {
    // With a ratio of 1 nothing but the statistics holds the guards back.
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
        EXPECT_EQ(simulate(all_ratios(1.0), {}, {}, seed).reason, "") << "seed " << seed;
}

TEST(GuardWatchTest, APoolAtItsAbsoluteLimitIsNotRolledBack) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Verdict verdict = simulate(
            {most(GuardMetric::kErrorRate, 0.0075), most(GuardMetric::kInvalidOutputRate, 0.01),
             most(GuardMetric::kDiffersShare, 0.03)},
            {}, {}, seed);
        EXPECT_EQ(verdict.reason, "") << "seed " << seed;
    }
}

TEST(GuardWatchTest, DifferencesThatStableHasWithItselfAreNoFault) {
    const Behaviour noisy{.differs = 0.4};
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
        EXPECT_EQ(simulate({most(GuardMetric::kDiffersShare, 0.1)}, noisy, noisy, seed).reason, "");
}

struct Fault {
    Behaviour behaviour;
    std::vector<Guard> guards;
    int within;  ///< Requests on each pool.
    const char* reason;
};

/// A stall every five minutes; with one a minute a p95 of the stable pool is hardly known at all.
constexpr double kSeldom = 1.0 / 300;

class FaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FaultTest, IsFoundInTime) {
    const Fault& fault = GetParam();
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        Behaviour stable{.stalls = kSeldom};
        Behaviour candidate = fault.behaviour;
        candidate.stalls = kSeldom;
        const Verdict verdict = simulate(fault.guards, stable, candidate, seed);
        EXPECT_THAT(verdict.reason, HasSubstr(fault.reason)) << "seed " << seed;
        EXPECT_LE(verdict.requests, fault.within) << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Planted, FaultTest,
    testing::Values(
        Fault{{.slower = 2.0}, {ratio(GuardMetric::kTtftP50, 1.3)}, 1'000, "ttft_p50 of candidate"},
        Fault{{.slower = 2.0}, {ratio(GuardMetric::kTtftP95, 1.3)}, 4'000, "ttft_p95 of candidate"},
        Fault{{.slower = 2.0}, {ratio(GuardMetric::kTbtP50, 1.3)}, 1'000, "tbt_p50 of candidate"},
        Fault{{.slow_tail = 5.0}, {ratio(GuardMetric::kTtftP95, 1.5)}, 5'000, "ttft_p95"},
        Fault{{.slower = 10.0}, {most(GuardMetric::kTtftP99, 3.0)}, 400, "ttft_p99"},
        Fault{{.errors = 0.10}, {most(GuardMetric::kErrorRate, 0.02)}, 800, "error_rate"},
        Fault{{.errors = 0.10}, {ratio(GuardMetric::kErrorRate, 2.0)}, 2'500, "error_rate"},
        Fault{{.errors = 1.0}, {most(GuardMetric::kErrorRate, 0.02)}, 200, "error_rate"},
        Fault{
            {.invalid = 0.2}, {most(GuardMetric::kInvalidOutputRate, 0.05)}, 500, "invalid_output"},
        Fault{{.differs = 0.3}, {most(GuardMetric::kDiffersShare, 0.1)}, 500, "differs_share"},
        Fault{{.differs = 1.0}, {ratio(GuardMetric::kDiffersShare, 2.0)}, 400, "differs_share"}));

// ---- One guard, sample by sample ------------------------------------------------------------------

class GuardWatchSamples : public testing::Test {
protected:
    void add(SampleWindow& window, int count, Attempt attempt) {
        for (int i = 0; i < count; ++i) window.add(attempt, now_ += milliseconds(10));
    }
    std::optional<std::string> look(GuardWatch& watch) { return watch.look(pool_, stable_, now_); }

    Time now_ = Time(std::chrono::hours(1));
    SampleWindow pool_;
    SampleWindow stable_;
};

TEST_F(GuardWatchSamples, FewerThanMinSamplesSayNothing) {
    GuardWatch watch(most(GuardMetric::kErrorRate, 0.01));
    for (int i = 0; i < 49; ++i) {
        add(pool_, 1, {.failed = true});
        EXPECT_FALSE(look(watch));
    }
    for (int i = 0; i < 2; ++i) {
        add(pool_, 1, {.failed = true});
        EXPECT_FALSE(look(watch));
    }
    add(pool_, 1, {.failed = true});
    EXPECT_THAT(look(watch).value_or(""), HasSubstr("error_rate of candidate is 100 %, above 1 %"));
}

TEST_F(GuardWatchSamples, TheStablePoolNeedsMinSamplesToo) {
    GuardWatch watch(ratio(GuardMetric::kErrorRate, 1.5));
    add(stable_, 199, {});
    for (int i = 0; i < 5; ++i) {
        add(pool_, 300, {.failed = true});
        EXPECT_FALSE(look(watch));
    }
    add(stable_, 1, {});
    for (int i = 0; i < 2; ++i) {
        add(pool_, 1, {.failed = true});
        EXPECT_FALSE(look(watch));
    }
    add(pool_, 1, {.failed = true});
    EXPECT_TRUE(look(watch));
}

TEST_F(GuardWatchSamples, LooksWithoutNewSamplesConfirmNothing) {
    GuardWatch watch(most(GuardMetric::kErrorRate, 0.01));
    add(pool_, 500, {.failed = true});
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(look(watch));
    EXPECT_EQ(watch.confirmations(), 1);
}

TEST_F(GuardWatchSamples, OneGoodLookStartsOver) {
    GuardWatch watch(most(GuardMetric::kErrorRate, 0.5));
    add(pool_, 500, {.failed = true});
    EXPECT_FALSE(look(watch));
    add(pool_, 2'000, {});
    EXPECT_FALSE(look(watch));
    EXPECT_EQ(watch.confirmations(), 0);
}

TEST_F(GuardWatchSamples, WhatIsOlderThanTheWindowDoesNotCount) {
    GuardWatch watch(most(GuardMetric::kErrorRate, 0.01));
    add(pool_, 500, {.failed = true});
    now_ += std::chrono::minutes(6);
    for (int i = 0; i < 5; ++i) {
        add(pool_, 60, {});
        EXPECT_FALSE(look(watch));
    }
}

TEST_F(GuardWatchSamples, RequestsWithoutATimeDoNotCountForTimes) {
    GuardWatch watch(most(GuardMetric::kTbtP50, 0.1));
    for (int i = 0; i < 5; ++i) {
        add(pool_, 100, {.ttft = Seconds(1.0)});
        EXPECT_FALSE(look(watch));
    }
}

TEST_F(GuardWatchSamples, MemoryIsBounded) {
    add(pool_, static_cast<int>(limits::kGuardSamples) + 100, {});
    EXPECT_EQ(pool_.attempts().size(), limits::kGuardSamples);
}

}  // namespace
}  // namespace sluice::traffic
