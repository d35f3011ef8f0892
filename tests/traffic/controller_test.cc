#include "traffic/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace sluice::traffic {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

const std::vector<std::string> kPools = {"stable", "candidate", "other"};
const std::vector<PoolFacts> kFacts = {{"stable", 1, 64, 0}, {"candidate", 1, 64, 0}};

Plan half() {
    return {.stable = "stable",
            .salt = "",
            .splits = {{"candidate", 0.5, minutes(10)}},
            .shadows = {},
            .guards = {}};
}

Plan shadowed(double share = 1.0, std::uint32_t concurrent = 2) {
    return {.stable = "stable",
            .salt = "",
            .splits = {},
            .shadows = {{"candidate", share, concurrent}},
            .guards = {}};
}

class ControllerTest : public testing::Test {
protected:
    Controller make(Plan plan) {
        return Controller(Controller::fresh(std::move(plan), 1, now_.wall), now_);
    }
    void pass(milliseconds time) {
        now_.steady += time;
        now_.wall += time;
    }
    /// How many of a thousand conversations the candidate answers.
    int candidates(const Controller& controller) {
        int count = 0;
        for (int i = 0; i < 1'000; ++i)
            count += controller.choose(fmt::format("c{}", i), now_.steady) == "candidate" ? 1 : 0;
        return count;
    }

    Now now_{Time(std::chrono::hours(1)), WallTime(std::chrono::hours(490'000))};
};

// ---- Weights and leases ---------------------------------------------------------------------------

TEST_F(ControllerTest, AWeightIsAShareOfTheConversations) {
    EXPECT_NEAR(candidates(make(half())), 500, 80);
    EXPECT_EQ(candidates(make(shadowed())), 0);
}

TEST_F(ControllerTest, AWeightThatIsNotRenewedEndsAndIsNotedOnce) {
    Controller controller = make(half());
    pass(minutes(10) - milliseconds(1));
    EXPECT_GT(candidates(controller), 0);
    pass(milliseconds(1));
    EXPECT_EQ(candidates(controller), 0);
    EXPECT_FALSE(controller.open("candidate", now_.steady));
    EXPECT_FALSE(controller.latched());
    const auto happened = controller.tick(now_);
    ASSERT_THAT(happened.notes, SizeIs(1));
    EXPECT_EQ(happened.notes[0].what, "lease_ended");
    EXPECT_THAT(controller.tick(now_).notes, SizeIs(0));
}

TEST_F(ControllerTest, ApplyingThePresentPlanRenewsItsWeights) {
    Controller controller = make(half());
    pass(minutes(9));
    const auto change = controller.apply(half(), kFacts, false, "me", "", now_);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->state.version, 1U);
    controller.adopt(change->state, now_);
    pass(minutes(9));
    EXPECT_GT(candidates(controller), 0);
    EXPECT_EQ(controller.lease_left("candidate", now_.steady), minutes(1));
}

TEST_F(ControllerTest, ALeaseGoesOnThroughARestartAndAClockSetBackDoesNotLengthenIt) {
    const State state = make(half()).state();
    pass(minutes(9));
    EXPECT_EQ(Controller(state, now_).lease_left("candidate", now_.steady), minutes(1));
    now_.wall -= std::chrono::hours(5);
    EXPECT_EQ(Controller(state, now_).lease_left("candidate", now_.steady), minutes(10));
}

TEST_F(ControllerTest, ANewPlanTakesEffectWhenItIsAdopted) {
    Controller controller = make(half());
    Plan next = half();
    next.splits.front().weight = 1.0;
    const auto change = controller.apply(next, kFacts, false, "me", "step 2", now_);
    ASSERT_TRUE(change);
    EXPECT_LT(candidates(controller), 1'000);
    controller.adopt(change->state, now_);
    EXPECT_EQ(candidates(controller), 1'000);
    EXPECT_EQ(controller.state().version, 2U);
    EXPECT_EQ(change->entry.what, "apply");
    EXPECT_EQ(change->entry.who, "me");
    EXPECT_EQ(change->entry.why, "new plan: step 2");
}

TEST_F(ControllerTest, APlanWithoutAWayBackIsRefusedAndChangesNothing) {
    const std::vector<PoolFacts> none = {{"stable", 0, 64, 0}};
    const Controller controller = make(shadowed());
    const auto change = controller.apply(half(), none, false, "me", "", now_);
    ASSERT_FALSE(change);
    EXPECT_EQ(change.error().place(), "plan.stable");
    EXPECT_EQ(controller.plan(), shadowed());
}

// ---- The latch ------------------------------------------------------------------------------------

TEST_F(ControllerTest, ARollbackTakesEffectAtOnce) {
    Controller controller = make(half());
    const Change change = controller.roll_back("by hand: looks odd", "manual", "me", now_);
    EXPECT_TRUE(change.state.latched);
    EXPECT_EQ(candidates(controller), 0);
    EXPECT_FALSE(controller.open("candidate", now_.steady));
    EXPECT_TRUE(controller.open("stable", now_.steady));
    EXPECT_EQ(change.entry.what, "rollback");
    EXPECT_EQ(change.entry.why, "by hand: looks odd");
}

TEST_F(ControllerTest, NothingButRearmOpensTheLatch) {
    Controller controller = make(half());
    const State latched = controller.roll_back("x", "manual", "me", now_).state;
    // The same plan again, and another one.
    for (double weight : {0.5, 0.9}) {
        Plan plan = half();
        plan.splits.front().weight = weight;
        const auto change = controller.apply(plan, kFacts, false, "me", "", now_);
        ASSERT_TRUE(change);
        controller.adopt(change->state, now_);
        EXPECT_TRUE(controller.latched());
        EXPECT_EQ(candidates(controller), 0);
    }
    // A restart with the same configuration, and with another one.
    for (double weight : {0.5, 0.2}) {
        Plan plan = half();
        plan.splits.front().weight = weight;
        const Change start = resume(std::optional(latched), plan, kPools, now_);
        EXPECT_TRUE(start.state.latched);
        EXPECT_EQ(start.state.reason, "x");
        EXPECT_EQ(candidates(Controller(start.state, now_)), 0);
    }
    const auto rearmed = controller.rearm(kFacts, false, "me", "fixed", now_);
    ASSERT_TRUE(rearmed);
    controller.adopt(rearmed->state, now_);
    EXPECT_GT(candidates(controller), 0);
    EXPECT_EQ(rearmed->entry.why, "after \"x\": fixed");
    EXPECT_EQ(controller.state().reason, "");
}

TEST_F(ControllerTest, RearmNeedsALatchAndAWayBack) {
    Controller controller = make(half());
    EXPECT_FALSE(controller.rearm(kFacts, false, "me", "", now_));
    (void)controller.roll_back("x", "manual", "me", now_);
    const std::vector<PoolFacts> none = {{"stable", 0, 64, 0}};
    EXPECT_FALSE(controller.rearm(none, true, "me", "", now_));
    EXPECT_TRUE(controller.latched());
}

TEST_F(ControllerTest, RearmRenewsTheWeights) {
    Controller controller = make(half());
    (void)controller.roll_back("x", "manual", "me", now_);
    pass(minutes(30));
    controller.adopt(controller.rearm(kFacts, false, "me", "", now_)->state, now_);
    EXPECT_EQ(controller.lease_left("candidate", now_.steady), minutes(10));
}

TEST_F(ControllerTest, TheFirstReasonStays) {
    Controller controller = make(half());
    (void)controller.roll_back("first", "manual", "me", now_);
    EXPECT_EQ(controller.roll_back("second", "manual", "me", now_).state.reason, "first");
}

// ---- Starting -------------------------------------------------------------------------------------

TEST_F(ControllerTest, AFileThatCannotBeReadCountsAsRolledBack) {
    const Result<std::optional<State>> damaged =
        std::unexpected(Error::corrupt("its checksum is wrong", "plan.state"));
    const Change start = resume(damaged, half(), kPools, now_);
    EXPECT_TRUE(start.state.latched);
    EXPECT_EQ(start.state.reason_kind, "unreadable");
    EXPECT_THAT(start.state.reason, HasSubstr("checksum"));
    EXPECT_EQ(candidates(Controller(start.state, now_)), 0);
}

TEST_F(ControllerTest, WithoutAFileTheConfigurationHolds) {
    const Change start = resume(std::optional<State>(), half(), kPools, now_);
    EXPECT_FALSE(start.state.latched);
    EXPECT_EQ(start.state.plan, half());
    EXPECT_EQ(start.state.version, 1U);
}

TEST_F(ControllerTest, WhatWasAppliedHoldsUntilTheConfigurationChanges) {
    Controller controller = make(half());
    Plan applied = half();
    applied.splits.front().weight = 0.7;
    controller.adopt(controller.apply(applied, kFacts, false, "me", "", now_)->state, now_);

    EXPECT_EQ(resume(std::optional(controller.state()), half(), kPools, now_).state.plan, applied);
    Plan edited = half();
    edited.splits.front().weight = 0.1;
    const Change start = resume(std::optional(controller.state()), edited, kPools, now_);
    EXPECT_EQ(start.state.plan, edited);
    EXPECT_EQ(start.state.version, 3U);
}

TEST_F(ControllerTest, AStoredPlanOfPoolsThatAreGoneIsDropped) {
    const std::vector<std::string> pools = {"stable"};
    Controller controller = make(shadowed());
    Plan alone{.stable = "stable"};
    State stored = controller.state();
    stored.config_digest = digest(alone);
    EXPECT_EQ(resume(std::optional(stored), alone, pools, now_).state.plan, alone);
}

// ---- The breaker ----------------------------------------------------------------------------------

TEST_F(ControllerTest, AnOutageOfASplitPoolGoesToStableAndLatchesIfItLasts) {
    Controller controller = make(half());
    controller.on_pool_ready("candidate", true, now_.steady);
    EXPECT_GT(candidates(controller), 0);
    controller.on_pool_ready("candidate", false, now_.steady);
    EXPECT_EQ(candidates(controller), 0);
    pass(seconds(9));
    EXPECT_FALSE(controller.tick(now_).rolled_back);
    pass(seconds(1));
    const auto happened = controller.tick(now_);
    ASSERT_TRUE(happened.rolled_back);
    EXPECT_EQ(happened.rolled_back->state.reason_kind, "breaker");
    EXPECT_THAT(happened.rolled_back->state.reason, HasSubstr("no worker for 10s"));
    EXPECT_TRUE(controller.latched());
}

TEST_F(ControllerTest, AnOutageOfAPoolThatOnlyGetsCopiesLatchesIfAGuardWatchesIt) {
    for (const bool guarded : {false, true}) {
        Plan plan = shadowed();
        if (guarded) {
            plan.guards = {{.pool = "candidate",
                            .metric = GuardMetric::kErrorRate,
                            .max = 0.05,
                            .max_ratio = {},
                            .min_samples = 20,
                            .window = minutes(5)}};
        }
        Controller controller = make(plan);
        controller.on_pool_ready("candidate", true, now_.steady);
        controller.on_pool_ready("candidate", false, now_.steady);
        pass(seconds(10));
        EXPECT_EQ(controller.tick(now_).rolled_back.has_value(), guarded);
    }
}

TEST_F(ControllerTest, OutagesThatComeBackLatch) {
    Controller controller = make(half());
    controller.on_pool_ready("candidate", true, now_.steady);
    for (std::size_t outage = 1; outage <= Controller::kOutages; ++outage) {
        EXPECT_FALSE(controller.tick(now_).rolled_back) << outage;
        controller.on_pool_ready("candidate", false, now_.steady);
        pass(seconds(2));
        controller.on_pool_ready("candidate", true, now_.steady);
    }
    EXPECT_TRUE(controller.tick(now_).rolled_back);
}

TEST_F(ControllerTest, SeldomOutagesAndAPoolThatIsOnlyStartingDoNotLatch) {
    Controller controller = make(half());
    controller.on_pool_ready("candidate", false, now_.steady);
    pass(minutes(1));
    EXPECT_FALSE(controller.tick(now_).rolled_back);
    controller.on_pool_ready("candidate", true, now_.steady);
    for (int outage = 0; outage < 3; ++outage) {
        controller.on_pool_ready("candidate", false, now_.steady);
        pass(seconds(2));
        controller.on_pool_ready("candidate", true, now_.steady);
        EXPECT_FALSE(controller.tick(now_).rolled_back);
        pass(minutes(3));
        controller.adopt(controller.apply(half(), kFacts, false, "me", "", now_)->state, now_);
    }
}

TEST_F(ControllerTest, RearmingDuringAnOutageGivesThePoolItsTime) {
    Controller controller = make(half());
    controller.on_pool_ready("candidate", true, now_.steady);
    controller.on_pool_ready("candidate", false, now_.steady);
    pass(seconds(10));
    ASSERT_TRUE(controller.tick(now_).rolled_back);
    controller.adopt(controller.rearm(kFacts, false, "me", "", now_)->state, now_);
    EXPECT_FALSE(controller.tick(now_).rolled_back);
}

// ---- Copies ---------------------------------------------------------------------------------------

TEST_F(ControllerTest, AShareOfTheConversationsIsCopiedAndAlwaysTheSame) {
    Controller controller = make(shadowed(0.3, 1'000));
    std::vector<bool> first;
    int copied = 0;
    for (int i = 0; i < 1'000; ++i) {
        const auto copies = controller.copies(fmt::format("c{}", i), "stable", false);
        copied += static_cast<int>(copies.made.size());
        first.push_back(!copies.made.empty());
    }
    EXPECT_NEAR(copied, 300, 75);
    for (int i = 0; i < 1'000; ++i)
        EXPECT_EQ(!controller.copies(fmt::format("c{}", i), "stable", false).made.empty(),
                  first[i]);
}

TEST_F(ControllerTest, TheBudgetIsOfCopiesThatRun) {
    Controller controller = make(shadowed(1.0, 2));
    Copies one = controller.copies("a", "stable", false);
    const Copies two = controller.copies("b", "stable", false);
    EXPECT_THAT(one.made, SizeIs(1));
    EXPECT_EQ(controller.copies_running("candidate"), 2U);
    EXPECT_THAT(controller.copies("c", "stable", false).dropped,
                testing::ElementsAre(CopyDropped::kBudget));
    one.made.clear();
    EXPECT_THAT(controller.copies("d", "stable", false).made, SizeIs(1));
}

TEST_F(ControllerTest, UnderPressureNothingIsCopied) {
    Controller controller = make(shadowed());
    const Copies copies = controller.copies("a", "stable", true);
    EXPECT_THAT(copies.made, SizeIs(0));
    EXPECT_THAT(copies.dropped, testing::ElementsAre(CopyDropped::kPressure));
}

TEST_F(ControllerTest, ARollbackEndsCopiesAndOnlyStableAnswersAreCopied) {
    Controller controller = make(shadowed());
    EXPECT_THAT(controller.copies("a", "candidate", false).made, SizeIs(0));
    (void)controller.roll_back("x", "manual", "me", now_);
    EXPECT_THAT(controller.copies("a", "stable", false).made, SizeIs(0));
}

TEST_F(ControllerTest, APlaceOutlivesItsController) {
    std::optional<Controller> controller = make(shadowed());
    const Copies copies = controller->copies("a", "stable", false);
    controller.reset();
    EXPECT_TRUE(copies.made[0].place.taken());
}

// ---- Guards ---------------------------------------------------------------------------------------

TEST_F(ControllerTest, AGuardRollsBackAndItsEvidenceIsForgotten) {
    Plan plan = half();
    plan.guards = {{"candidate", GuardMetric::kErrorRate, 0.01, std::nullopt, 20, minutes(5)}};
    Controller controller = make(plan);
    std::optional<Change> change;
    for (int i = 0; i < 10 && !change; ++i) {
        for (int n = 0; n < 50; ++n)
            controller.on_attempt("candidate", {.failed = true}, now_.steady);
        pass(seconds(1));
        change = controller.tick(now_).rolled_back;
    }
    ASSERT_TRUE(change);
    EXPECT_EQ(change->state.reason_kind, "error_rate");
    EXPECT_EQ(change->entry.who, "guard");
    controller.adopt(controller.rearm(kFacts, false, "me", "", now_)->state, now_);
    controller.on_attempt("candidate", {}, now_.steady);
    EXPECT_FALSE(controller.tick(now_).rolled_back);
}

TEST(AuditEntryTest, IsOneLineOfJson) {
    const AuditEntry entry{.at = WallTime(milliseconds(1'764'547'200'123)),
                           .who = "me",
                           .what = "apply",
                           .why = "a\nb",
                           .version = 3,
                           .digest = "d",
                           .latched = false};
    EXPECT_EQ(to_json(entry), R"({"time":"2025-12-01T00:00:00.123Z","who":"me","what":"apply",)"
                              R"("why":"a\nb","version":3,"digest":"d","latched":false})");
}

}  // namespace
}  // namespace sluice::traffic
