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

    const Time start{seconds(1'000)};
    Time now = start;
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

TEST_F(RequestTest, AWorkerThatNeverTookTheRequestIsNoLossOfIts) {
    run_on(0);
    const std::uint32_t most = Rules{}.not_taken_max;
    for (std::uint32_t gone = 1; gone < most; ++gone) {
        EXPECT_EQ(on(LegFailed{LegFault::kNotTaken}), kElsewhere);
        EXPECT_EQ(on(WorkerFound{.worker = 1}), std::vector{Kind::kStartLeg});
    }
    // A token restores this budget, too; without one it is used up in the end.
    static_cast<void>(on(TokensCame{1}));
    for (std::uint32_t gone = 1; gone < most; ++gone) {
        EXPECT_EQ(on(LegFailed{LegFault::kNotTaken}), kElsewhere);
        EXPECT_EQ(on(WorkerFound{.worker = 1}), std::vector{Kind::kResumeLeg});
    }
    EXPECT_EQ(on(LegFailed{LegFault::kNotTaken}), kElsewhere);
    EXPECT_EQ(on(WorkerFound{.worker = 1}), std::vector{Kind::kResumeLeg});
    EXPECT_EQ(on(LegFailed{LegFault::kNotTaken}), kFailed);
    EXPECT_EQ(failure, Failure::kWorkersLost);
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
    EXPECT_EQ(on(PoolClosed{0, Running::kFinish}), kNothing);
    EXPECT_EQ(on(PoolClosed{1, Running::kEvacuate}), kNothing);
    EXPECT_EQ(on(PoolClosed{0, Running::kEvacuate}), kElsewhere);
    EXPECT_EQ(on(WorkerFound{.pool = 1}), std::vector{Kind::kStartLeg});
    EXPECT_EQ(request.losses(), 0U);
}

TEST_F(RequestTest, WhatCannotBeResumedStaysInAClosedPool) {
    run_on(0, kOnceEach);
    static_cast<void>(on(AnswerBegun{}));
    EXPECT_EQ(on(PoolClosed{0, Running::kEvacuate}), kNothing);
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

// ---- Prefill, hand-over, decode -------------------------------------------------------------------

class HandOverTest : public RequestTest {
protected:
    std::vector<Kind> found(LegPhase leg, routing::WorkerIndex worker = 0) {
        return on(WorkerFound{.pool = 0, .worker = worker, .rules = rules, .leg = leg});
    }
    /// Prefill has run on `worker`, and decode is sought.
    void hand_over(routing::WorkerIndex worker = 0) {
        if (!request.held() && request.tokens() == 0) static_cast<void>(on(Prepared{}));
        static_cast<void>(found(LegPhase::kPrefill, worker));
        static_cast<void>(on(TokensCame{1}));
        EXPECT_EQ(on(HandedOver{}), kElsewhere);
    }
    static inline const std::vector<Kind> kBackToPrefill{Kind::kEndLeg, Kind::kRelease,
                                                         Kind::kSeek};
    Rules rules;
};

TEST_F(HandOverTest, PrefillAndDecodeAreTwoLegs) {
    static_cast<void>(on(Prepared{}));
    EXPECT_EQ(request.wanted(), LegPhase::kPrefill);
    EXPECT_EQ(found(LegPhase::kPrefill), std::vector{Kind::kStartLeg});
    static_cast<void>(on(TokensCame{1}));
    EXPECT_EQ(on(HandedOver{}), kElsewhere);
    EXPECT_TRUE(request.held());
    EXPECT_EQ(request.wanted(), LegPhase::kDecode);
    EXPECT_EQ(found(LegPhase::kDecode, 1), std::vector{Kind::kResumeLeg});
    EXPECT_EQ(on(TokensCame{1}), kNothing) << "the decode worker has acknowledged";
    EXPECT_FALSE(request.held());
    EXPECT_EQ(on(LegEnded{}), kDone);
    EXPECT_EQ(request.resumes(), 0U);
    EXPECT_EQ(request.retries(), 0U);
}

TEST_F(HandOverTest, APromptThatEndsInPrefillNeedsNoDecode) {
    static_cast<void>(on(Prepared{}));
    static_cast<void>(found(LegPhase::kPrefill));
    static_cast<void>(on(TokensCame{1}));
    EXPECT_EQ(on(LegEnded{}), kDone);
}

TEST_F(HandOverTest, WithoutAHandOverOneLegDoesItAll) {
    static_cast<void>(on(Prepared{}));
    static_cast<void>(found(LegPhase::kFull));
    static_cast<void>(on(TokensCame{1}));
    EXPECT_EQ(on(HandedOver{}), kNothing);
    EXPECT_EQ(on(LegEnded{}), kDone);
}

TEST_F(HandOverTest, WhoeverEndsItWhileBlocksAreHeldLetsThemGo) {
    hand_over();
    EXPECT_EQ(on(ClientGone{}), (std::vector{Kind::kEndLeg, Kind::kRelease, Kind::kFinish}));
}

TEST_F(HandOverTest, ADeadlineDuringTheHandOverLetsThemGo) {
    hand_over();
    now += seconds(60);
    EXPECT_EQ(on(Tick{}), (std::vector{Kind::kEndLeg, Kind::kRelease, Kind::kFail, Kind::kFinish}));
    EXPECT_EQ(request.outcome(), Outcome::kTimeoutDecode);
}

TEST_F(HandOverTest, ALostDecodeLegStartsAgainAtPrefill) {
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    EXPECT_EQ(on(LegFailed{LegFault::kUnavailable}), kBackToPrefill);
    EXPECT_EQ(request.wanted(), LegPhase::kPrefill);
    EXPECT_TRUE(request.after_loss());
    EXPECT_EQ(request.resumes(), 1U);
    EXPECT_TRUE(request.tried().has(1));
}

TEST_F(HandOverTest, LostBlocksAreNoLoss) {
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    EXPECT_EQ(on(LegFailed{LegFault::kBlocksLost}), kBackToPrefill);
    EXPECT_EQ(request.losses(), 0U);
    EXPECT_EQ(request.resumes(), 0U);
    EXPECT_FALSE(request.tried().has(1));
    EXPECT_EQ(request.fallbacks(), 1U);
}

TEST_F(HandOverTest, AfterTwoThatFailedOneWorkerDoesItAll) {
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    static_cast<void>(on(LegFailed{LegFault::kBlocksLost}));
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    EXPECT_EQ(on(LegFailed{LegFault::kBlocksLost}), kBackToPrefill);
    EXPECT_EQ(request.wanted(), LegPhase::kFull);
    static_cast<void>(found(LegPhase::kFull));
    static_cast<void>(on(TokensCame{1}));
    EXPECT_EQ(request.wanted(), LegPhase::kPrefill) << "its next loss may try a hand-over again";
}

TEST_F(HandOverTest, APromptThatKillsDecodeWorkersEndsThoughPrefillGetsOn) {
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    static_cast<void>(on(LegFailed{LegFault::kUnavailable}));
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 2));
    EXPECT_EQ(on(LegFailed{LegFault::kUnavailable}),
              (std::vector{Kind::kEndLeg, Kind::kRelease, Kind::kFail, Kind::kFinish}));
    EXPECT_EQ(failure, Failure::kWorkersLost);
}

TEST_F(HandOverTest, APrefillAndThenADecodeWorkerMayBeLost) {
    static_cast<void>(on(Prepared{}));
    static_cast<void>(found(LegPhase::kPrefill, 0));
    EXPECT_EQ(on(LegFailed{LegFault::kUnavailable}), kElsewhere);
    hand_over(1);
    static_cast<void>(found(LegPhase::kDecode, 2));
    EXPECT_EQ(on(LegFailed{LegFault::kUnavailable}), kBackToPrefill);
    hand_over(1);
    static_cast<void>(found(LegPhase::kDecode, 3));
    static_cast<void>(on(TokensCame{1}));
    EXPECT_EQ(on(LegEnded{}), kDone);
}

TEST_F(HandOverTest, ADecodeLegThatShowsNoLifeIsBlamedAndLeft) {
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    now += seconds(9);
    EXPECT_EQ(on(Progressed{}), kNothing);
    EXPECT_EQ(request.next_due(), now + seconds(10));
    now += seconds(10);
    EXPECT_EQ(on(Tick{}), (std::vector{Kind::kBlame, Kind::kEndLeg, Kind::kRelease, Kind::kSeek}));
}

TEST_F(HandOverTest, APrefillOfAMinuteThatGetsOnIsNotAStall) {
    rules.stall_time = seconds(5);
    request = Request(now, seconds(600));
    static_cast<void>(on(Prepared{}));
    static_cast<void>(found(LegPhase::kPrefill));
    for (int second = 0; second < 60; second += 4) {
        now += seconds(4);
        EXPECT_EQ(on(Tick{}), kNothing);
        EXPECT_EQ(on(Progressed{}), kNothing);
    }
    now += seconds(5);
    EXPECT_EQ(on(Tick{}), (std::vector{Kind::kBlame, Kind::kEndLeg, Kind::kSeek}));
}

TEST_F(HandOverTest, ImagesAreEncodedFirst) {
    EXPECT_EQ(on(Prepared{.has_images = true}), std::vector{Kind::kSeek});
    EXPECT_EQ(request.wanted(), LegPhase::kEncode);
    static_cast<void>(found(LegPhase::kEncode, 4));
    EXPECT_EQ(request.next_due(), now + rules.encode_time);
    EXPECT_EQ(on(Encoded{}), kElsewhere);
    EXPECT_EQ(request.wanted(), LegPhase::kPrefill);
    EXPECT_EQ(request.phase(), Phase::kPrefill);
}

TEST_F(HandOverTest, WhileWorkersAreBusyPatienceDoesNotRunOut) {
    hand_over();
    now += seconds(29);
    EXPECT_EQ(on(NoWorker{routing::NoPick::kAllBusy}), std::vector{Kind::kWait});
    now += seconds(29);
    EXPECT_EQ(on(Tick{}), kNothing);
    static_cast<void>(on(WorkerAvailable{}));
    EXPECT_EQ(on(NoWorker{routing::NoPick::kNoneReady}), std::vector{Kind::kWait});
    now += seconds(1);
    EXPECT_EQ(on(Tick{}), (std::vector{Kind::kEndLeg, Kind::kRelease, Kind::kFail, Kind::kFinish}));
    EXPECT_EQ(failure, Failure::kNoWorker);
}

TEST_F(HandOverTest, WhoWaitsForItsTurnDoesNotLosePatience) {
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    static_cast<void>(on(LegFailed{LegFault::kUnavailable}));
    EXPECT_EQ(on(Paced{}), kNothing);
    now += seconds(50);
    EXPECT_EQ(on(Tick{}), kNothing);
    EXPECT_EQ(on(WorkerAvailable{}), std::vector{Kind::kSeek});
    EXPECT_EQ(request.next_due(), start + seconds(60)) << "the deadline comes before";
}

TEST_F(HandOverTest, AClosedWorkersLegsMoveOn) {
    hand_over();
    static_cast<void>(found(LegPhase::kDecode, 1));
    static_cast<void>(on(TokensCame{1}));
    EXPECT_EQ(on(WorkerClosed{.worker = 2, .running = Running::kEvacuate}), kNothing);
    EXPECT_EQ(on(WorkerClosed{.worker = 1, .running = Running::kFinish}), kNothing);
    EXPECT_EQ(on(WorkerClosed{.worker = 1, .running = Running::kEvacuate}), kElsewhere);
    EXPECT_EQ(request.resumes(), 1U);
    EXPECT_EQ(request.losses(), 0U);
}

}  // namespace
}  // namespace sluice::dispatch
