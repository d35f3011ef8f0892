#include "dispatch/request.h"

#include <gtest/gtest.h>

namespace sluice::dispatch {
namespace {

using Kind = Action::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

class RequestTest : public testing::Test {
protected:
    std::vector<Kind> on(const Event& event) {
        std::vector<Kind> kinds;
        failure = Failure::kNone;
        for (const Action& action : request.on(event, now)) {
            kinds.push_back(action.kind);
            if (action.kind == Kind::kFail) failure = action.failure;
        }
        return kinds;
    }
    /// A worker has it.
    void run_on(routing::WorkerIndex worker, Rules rules = {}) {
        static_cast<void>(on(Prepared{}));
        static_cast<void>(on(WorkerFound{.pool = 0, .worker = worker, .rules = rules}));
    }

    static inline const std::vector<Kind> kNothing{};
    static inline const std::vector<Kind> kFailed{Kind::kEndLeg, Kind::kFail, Kind::kFinish};
    static inline const std::vector<Kind> kDone{Kind::kEndLeg, Kind::kFinish};
    static inline const std::vector<Kind> kElsewhere{Kind::kEndLeg, Kind::kSeek};
    static inline const Rules kOnceEach{
        .resumable = false, .tried = routing::Tried::Rule::kExclude, .losses_max = 3};

    Time now{seconds(1'000)};
    Request request{now, seconds(60)};
    Failure failure = Failure::kNone;
};

TEST_F(RequestTest, AGoodLifeHasOneLeg) {
    EXPECT_EQ(on(Prepared{}), std::vector{Kind::kSeek});
    now += milliseconds(5);
    EXPECT_EQ(on(WorkerFound{.pool = 1, .worker = 3, .rules = {}}), std::vector{Kind::kStartLeg});
    EXPECT_EQ(request.phase(), Phase::kPrefill);
    now += milliseconds(5);
    EXPECT_EQ(on(TokensCame{2}), kNothing);
    EXPECT_EQ(request.phase(), Phase::kDecode);
    now += milliseconds(5);
    EXPECT_EQ(on(TokensCame{1}), kNothing);
    EXPECT_EQ(on(LegEnded{}), kDone);
    EXPECT_EQ(request.outcome(), Outcome::kOk);
    EXPECT_EQ(request.tokens(), 3U);
    const Marks& marks = request.marks();
    EXPECT_EQ(*marks.dispatched - marks.arrival, milliseconds(5));
    EXPECT_EQ(*marks.first_token - marks.arrival, milliseconds(10));
    EXPECT_EQ(*marks.last_token - marks.arrival, milliseconds(15));
    EXPECT_TRUE(marks.ended.has_value());
}

TEST_F(RequestTest, WithoutAWorkerItWaitsAndSeeksAgain) {
    static_cast<void>(on(Prepared{}));
    EXPECT_EQ(on(NoWorker{}), std::vector{Kind::kWait});
    EXPECT_EQ(on(WorkerAvailable{}), std::vector{Kind::kSeek});
    EXPECT_EQ(on(NoWorker{}), std::vector{Kind::kWait});
    EXPECT_EQ(on(QueueFull{}), kFailed);
    EXPECT_EQ(failure, Failure::kQueueFull);
    EXPECT_EQ(request.outcome(), Outcome::kRejected);
}

TEST_F(RequestTest, WithoutAPlaceToWaitInALostWorkerIsTheReason) {
    run_on(0);
    EXPECT_EQ(on(LegFailed{LegFault::kStalled}), kElsewhere);
    EXPECT_EQ(on(NoWorker{}), std::vector{Kind::kWait});
    EXPECT_EQ(on(QueueFull{}), kFailed);
    EXPECT_EQ(failure, Failure::kNoWorker);
    EXPECT_EQ(request.outcome(), Outcome::kWorkerLost);
}

TEST_F(RequestTest, BeforeTheFirstTokenALostLegStartsOverElsewhere) {
    run_on(2);
    EXPECT_EQ(on(LegFailed{LegFault::kUnavailable}), kElsewhere);
    EXPECT_TRUE(request.tried().has(2));
    EXPECT_EQ(on(WorkerFound{.worker = 1}), std::vector{Kind::kStartLeg});
    EXPECT_EQ(request.retries(), 1U);
    EXPECT_EQ(request.resumes(), 0U);
}

TEST_F(RequestTest, AfterItTheLegGoesOnAndANewTokenRestoresTheBudget) {
    run_on(0);
    for (int loss = 0; loss < 5; ++loss) {
        static_cast<void>(on(TokensCame{1}));
        EXPECT_EQ(on(LegFailed{LegFault::kStalled}), kElsewhere);
        EXPECT_EQ(on(WorkerFound{.worker = 1}), std::vector{Kind::kResumeLeg});
    }
    EXPECT_EQ(request.resumes(), 5U);
    EXPECT_EQ(request.retries(), 0U);
    // The second loss in a row.
    EXPECT_EQ(on(LegFailed{LegFault::kBroken}), kFailed);
    EXPECT_EQ(failure, Failure::kWorkersLost);
    EXPECT_EQ(request.outcome(), Outcome::kWorkerLost);
}

TEST_F(RequestTest, WhatCannotBeResumedEndsOnceTheAnswerHasBegun) {
    run_on(0, kOnceEach);
    static_cast<void>(on(AnswerBegun{}));
    EXPECT_EQ(on(LegFailed{LegFault::kUnavailable}), kFailed);
    EXPECT_EQ(failure, Failure::kCutOff);
    EXPECT_EQ(request.outcome(), Outcome::kError);
}

TEST_F(RequestTest, WhereItFailedItMayNotGoAgainIfTheRuleSaysSo) {
    run_on(0, kOnceEach);
    EXPECT_EQ(on(LegFailed{LegFault::kBroken}), kElsewhere);
    EXPECT_EQ(on(NoWorker{routing::NoPick::kAllTried}), kFailed);
    EXPECT_EQ(failure, Failure::kNoOtherWorker);
}

TEST_F(RequestTest, OthersThatAreBusyAreWaitedFor) {
    run_on(0, kOnceEach);
    static_cast<void>(on(LegFailed{LegFault::kBroken}));
    EXPECT_EQ(on(NoWorker{routing::NoPick::kAllBusy}), std::vector{Kind::kWait});
}

TEST_F(RequestTest, AFullWorkerIsNoLossAndAllFullIsAFullQueue) {
    run_on(0);
    for (routing::WorkerIndex worker = 1; worker < 6; ++worker) {
        EXPECT_EQ(on(LegFailed{LegFault::kFull}), kElsewhere);
        EXPECT_EQ(request.losses(), 0U);
        static_cast<void>(on(WorkerFound{.worker = worker}));
    }
    static_cast<void>(on(LegFailed{LegFault::kFull}));
    EXPECT_EQ(request.tried().rule, routing::Tried::Rule::kExclude);
    EXPECT_EQ(on(NoWorker{routing::NoPick::kAllTried}), kFailed);
    EXPECT_EQ(failure, Failure::kQueueFull);
}

TEST_F(RequestTest, ARefusalIsFinal) {
    run_on(0);
    EXPECT_EQ(on(LegFailed{LegFault::kRefused}), kFailed);
    EXPECT_EQ(failure, Failure::kRefused);
    EXPECT_EQ(request.outcome(), Outcome::kRejected);
}

TEST_F(RequestTest, TheDeadlineNamesThePhaseItEnded) {
    for (const auto& [phase, outcome] : {std::pair{Phase::kQueued, Outcome::kTimeoutQueue},
                                         std::pair{Phase::kPrefill, Outcome::kTimeoutPrefill},
                                         std::pair{Phase::kDecode, Outcome::kTimeoutDecode}}) {
        request = Request(now, seconds(60));
        static_cast<void>(on(Prepared{}));
        static_cast<void>(phase == Phase::kQueued ? on(NoWorker{}) : on(WorkerFound{}));
        if (phase == Phase::kDecode) static_cast<void>(on(TokensCame{1}));
        EXPECT_EQ(on(Tick{}), kNothing);
        now = request.next_due();
        EXPECT_EQ(on(Tick{}), kFailed);
        EXPECT_EQ(failure, Failure::kDeadline);
        EXPECT_EQ(request.outcome(), outcome);
    }
}

TEST_F(RequestTest, ALostStreamWaitsOnlySoLongForAnotherWorker) {
    run_on(0);
    static_cast<void>(on(TokensCame{1}));
    static_cast<void>(on(LegFailed{LegFault::kUnavailable}));
    static_cast<void>(on(NoWorker{}));
    EXPECT_EQ(request.next_due(), now + seconds(30));
    now = request.next_due();
    EXPECT_EQ(on(Tick{}), kFailed);
    EXPECT_EQ(failure, Failure::kNoWorker);
}

TEST_F(RequestTest, AClientThatLeavesEndsItInEveryPhase) {
    EXPECT_EQ(on(ClientGone{}), kDone);
    EXPECT_EQ(request.outcome(), Outcome::kClientGone);
    request = Request(now, seconds(60));
    run_on(0);
    static_cast<void>(on(TokensCame{1}));
    EXPECT_EQ(on(ClientGone{}), kDone);
}

TEST_F(RequestTest, AClosedPoolLetsItsRequestsFinishOrSendsThemElsewhere) {
    run_on(0);
    EXPECT_EQ(on(PoolClosed{0, PoolClosed::Running::kFinish}), kNothing);
    EXPECT_EQ(on(PoolClosed{1, PoolClosed::Running::kEvacuate}), kNothing);
    EXPECT_EQ(on(PoolClosed{0, PoolClosed::Running::kEvacuate}), kElsewhere);
    EXPECT_EQ(on(WorkerFound{.pool = 1}), std::vector{Kind::kStartLeg});
    EXPECT_EQ(request.losses(), 0U);
}

TEST_F(RequestTest, WhatCannotBeResumedStaysInAClosedPool) {
    run_on(0, kOnceEach);
    static_cast<void>(on(AnswerBegun{}));
    EXPECT_EQ(on(PoolClosed{0, PoolClosed::Running::kEvacuate}), kNothing);
}

TEST_F(RequestTest, AfterTheEndNothingFollows) {
    run_on(0);
    static_cast<void>(on(LegEnded{}));
    EXPECT_EQ(on(LegFailed{}), kNothing);
    EXPECT_EQ(on(ClientGone{}), kNothing);
    EXPECT_EQ(on(Abandoned{}), kNothing);
    now += seconds(100);
    EXPECT_EQ(on(Tick{}), kNothing);
    EXPECT_EQ(request.outcome(), Outcome::kOk);
}

TEST_F(RequestTest, EventsOutOfTurnDoNothing) {
    EXPECT_EQ(on(WorkerFound{}), kNothing);
    EXPECT_EQ(on(LegEnded{}), kNothing);
    EXPECT_EQ(on(TokensCame{1}), kNothing);
    EXPECT_EQ(on(WorkerAvailable{}), kNothing);
    EXPECT_EQ(request.phase(), Phase::kArriving);
}

TEST_F(RequestTest, AnotherModelCannotGoOn) {
    run_on(0);
    static_cast<void>(on(TokensCame{1}));
    static_cast<void>(on(LegFailed{}));
    static_cast<void>(on(WorkerFound{.worker = 1}));
    EXPECT_EQ(on(CannotResume{}), kFailed);
    EXPECT_EQ(failure, Failure::kOtherModel);
    EXPECT_EQ(request.outcome(), Outcome::kWorkerLost);
}

}  // namespace
}  // namespace sluice::dispatch
