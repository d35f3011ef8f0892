#include "sim/sim_engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "trace/random.h"

namespace sluice::sim {
namespace {

using dispatch::LegFault;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A step takes 10 ms, a prompt token 1 ms, an answer's token 5 ms.
EngineParameters simple() {
    EngineParameters p;
    p.step_us = 10'000;
    p.prefill_row_us = 1'000;
    p.decode_row_us = 5'000;
    p.decode_attended_us = 0;
    p.request_us = 0;
    p.handover_token_us = 10;
    p.step_tokens = 1'000;
    p.running_max = 100;
    p.blocks = 100;
    p.step_time_us = 1e9;
    return p;
}

struct Watcher final : JobObserver {
    explicit Watcher(const EventQueue& from) : queue(from) {}
    void on_admitted(const CachedTokens& tokens) override { cached = tokens.sum(); }
    void on_token() override { tokens.push_back(queue.now()); }
    void on_handover() override { handover = queue.now(); }
    void on_pulled() override { pulled = queue.now(); }
    void on_end() override { end = queue.now(); }
    void on_fault(LegFault what) override { fault = what; }

    const EventQueue& queue;
    std::optional<std::uint32_t> cached;
    std::vector<Time> tokens;
    std::optional<Time> handover;
    std::optional<Time> pulled;
    std::optional<Time> end;
    std::optional<LegFault> fault;
};

class SimEngineTest : public testing::Test {
protected:
    SimEngine& engine(const EngineParameters& parameters = simple()) {
        engine_ = std::make_unique<SimEngine>(queue_, parameters);
        return *engine_;
    }
    /// With a text of its own unless a text is given.
    Job job(std::uint32_t prompt, std::uint32_t answer, std::uint64_t text = 0) {
        const JobId id = ++jobs_;
        std::vector<BlockKey> chain((prompt + 511) / 512);
        for (std::size_t i = 0; i < chain.size(); ++i)
            chain[i] = (text == 0 ? 1'000 + id : text) * 1'000 + i;
        return {.id = id,
                .chain = std::make_shared<const std::vector<BlockKey>>(std::move(chain)),
                .prompt_tokens = prompt,
                .answer_tokens = answer};
    }
    Watcher& submit(Job job) {
        watchers_.push_back(std::make_unique<Watcher>(queue_));
        engine_->submit(std::move(job), *watchers_.back());
        return *watchers_.back();
    }
    void run() {
        while (queue_.step()) {
        }
    }
    void run_until(Time time) {
        bool reached = false;
        queue_.at(time, [&] { reached = true; });
        while (!reached) ASSERT_TRUE(queue_.step());
    }

    EventQueue queue_;
    std::unique_ptr<SimEngine> engine_;
    std::vector<std::unique_ptr<Watcher>> watchers_;
    JobId jobs_ = 0;
};

TEST_F(SimEngineTest, AStepTakesWhatItsWorkCosts) {
    engine();
    Watcher& watcher = submit(job(100, 3));
    run();
    // The prompt with the first token, then two steps with one row each.
    EXPECT_EQ(watcher.tokens, (std::vector{Time(milliseconds(110)), Time(milliseconds(125)),
                                           Time(milliseconds(140))}));
    EXPECT_EQ(watcher.end, Time(milliseconds(140)));
    EXPECT_EQ(engine_->totals().prefill_tokens, 100u);
    EXPECT_EQ(engine_->totals().computing, milliseconds(140));
    EXPECT_EQ(engine_->totals().decode_tokens, 2u);
    EXPECT_EQ(engine_->cache().held(), 0u);
}

TEST_F(SimEngineTest, AttentionMakesLaterTokensDearer) {
    EngineParameters p = simple();
    p.prefill_attended_us = 2;
    engine(p);
    Watcher& watcher = submit(job(100, 1));
    run();
    EXPECT_EQ(watcher.end, Time(std::chrono::microseconds(110'000 + 2 * 5'050)));
}

TEST_F(SimEngineTest, LongPromptsTakeSeveralStepsAndAnswersGoOnBeside) {
    EngineParameters p = simple();
    p.step_time_us = 100'000;
    engine(p);
    Watcher& first = submit(job(10, 50));
    Watcher& second = submit(job(5'000, 1));
    run();
    for (std::size_t i = 1; i < first.tokens.size(); ++i)
        EXPECT_LE(first.tokens[i] - first.tokens[i - 1], milliseconds(101)) << i;
    EXPECT_TRUE(second.end.has_value());
}

TEST_F(SimEngineTest, AnEngineThatTakesItselfForSlowBeginsWithShortStepsAndLearns) {
    EngineParameters p = simple();
    p.step_time_us = 100'000;
    p.forecast_step_us = 10'000;
    p.forecast_row_us = 10'000;  // Ten times what a prompt token takes.
    p.forecast_attended_us = 0.001;
    p.forecast_logits_us = 1'000;
    engine(p);
    Watcher& answer = submit(job(10, 90));
    submit(job(5'000, 1));
    run();
    const auto gap = [&](std::size_t i) { return answer.tokens[i] - answer.tokens[i - 1]; };
    ASSERT_EQ(answer.tokens.size(), 90u);
    EXPECT_LT(gap(2), milliseconds(40));
    EXPECT_GT(gap(40), milliseconds(80));
    EXPECT_LT(gap(40), milliseconds(120));
}

TEST_F(SimEngineTest, ByArrivalAShortPromptWaitsForALongOneAndByLengthItDoesNot) {
    for (const PrefillOrder order : {PrefillOrder::kArrival, PrefillOrder::kShortest}) {
        queue_ = EventQueue();
        EngineParameters p = simple();
        p.order = order;
        engine(p);
        submit(job(20'000, 1));
        Watcher& small = submit(job(100, 1));
        run();
        const double waited = sim::milliseconds(small.end->time_since_epoch());
        if (order == PrefillOrder::kArrival) {
            EXPECT_GT(waited, 20'000.0);
        } else {
            EXPECT_LT(waited, 2'100.0);  // It came while the first step ran.
        }
    }
}

TEST_F(SimEngineTest, ACachedPrefixIsNotComputedAgain) {
    engine();
    submit(job(1'024, 1, 7));
    run();
    Watcher& again = submit(job(1'100, 1, 7));
    run();
    EXPECT_EQ(again.cached, 1'024u);
    EXPECT_EQ(engine_->totals().prefill_tokens, 1'024u + 76u);
    // All of it cached: the last token is computed, since its logits are wanted.
    Watcher& same = submit(job(1'024, 1, 7));
    run();
    EXPECT_EQ(same.cached, 1'023u);
}

TEST_F(SimEngineTest, AResumedLegComputesItsAnswerLikeAPrompt) {
    engine();
    Job resumed = job(100, 10);
    resumed.answered = 4;
    Watcher& watcher = submit(resumed);
    run();
    EXPECT_EQ(watcher.tokens.size(), 6u);
    EXPECT_EQ(watcher.tokens.front(), Time(milliseconds(10 + 104)));
}

TEST_F(SimEngineTest, WithoutRoomTheLastOneGivesItsBlocksUpAndIsComputedAgain) {
    EngineParameters p = simple();
    p.blocks = 4;
    engine(p);
    Watcher& first = submit(job(1'000, 400));  // Two blocks, and one for its answer.
    Watcher& second = submit(job(500, 20));    // One, and one.
    run();
    EXPECT_EQ(first.tokens.size(), 400u);
    EXPECT_EQ(second.tokens.size(), 20u);
    EXPECT_EQ(engine_->cache().held(), 0u);
    Watcher& third = submit(job(512, 1'025));
    Watcher& fourth = submit(job(512, 600));
    run();
    EXPECT_EQ(third.tokens.size(), 1'025u);
    EXPECT_EQ(fourth.tokens.size(), 600u);
    EXPECT_GT(engine_->totals().preemptions, 0u);
    EXPECT_EQ(engine_->cache().held(), 0u);
}

TEST_F(SimEngineTest, WhatNeverFitsIsRefusedAndWhatIsTooMuchIsTurnedAway) {
    EngineParameters p = simple();
    p.blocks = 4;
    p.running_max = 1;
    p.waiting_max = 1;
    engine(p);
    EXPECT_EQ(submit(job(2'048, 1)).fault, std::nullopt);
    run();
    EXPECT_EQ(watchers_.back()->fault, LegFault::kRefused);
    submit(job(100, 10));
    submit(job(100, 10));
    Watcher& third = submit(job(100, 10));
    run();
    EXPECT_EQ(third.fault, LegFault::kFull);
}

TEST_F(SimEngineTest, ACancelledJobFreesWhatItHoldsAndIsNotHeardOfAgain) {
    engine();
    Watcher& watcher = submit(job(2'000, 100));
    run_until(Time(milliseconds(500)));  // In the middle of its prompt.
    EXPECT_GT(engine_->cache().held(), 0u);
    engine_->cancel(1);
    engine_->cancel(1);
    EXPECT_EQ(engine_->cache().held(), 0u);
    EXPECT_EQ(engine_->running(), 0u);
    run();
    EXPECT_TRUE(watcher.tokens.empty());
    EXPECT_FALSE(watcher.end || watcher.fault);
}

TEST_F(SimEngineTest, ACrashLosesEverythingAndComesBackEmpty) {
    engine();
    submit(job(1'024, 1, 7));
    run();
    const auto epoch = engine_->epoch();
    Watcher& lost = submit(job(100, 1'000));
    run_until(queue_.now() + milliseconds(500));
    engine_->crash(seconds(5));
    EXPECT_FALSE(engine_->up());
    Watcher& refused = submit(job(100, 1));
    run();
    EXPECT_EQ(lost.fault, LegFault::kUnavailable);
    EXPECT_FALSE(lost.end);
    EXPECT_EQ(refused.fault, LegFault::kUnavailable);
    EXPECT_TRUE(engine_->up());
    EXPECT_GT(engine_->epoch(), epoch);
    Watcher& cold = submit(job(1'024, 1, 7));
    run();
    EXPECT_EQ(cold.cached, 0u);
    EXPECT_TRUE(cold.end);
}

TEST_F(SimEngineTest, AStalledEngineSaysNothingUntilItGoesOn) {
    engine();
    Watcher& watcher = submit(job(100, 100));
    run_until(Time(milliseconds(200)));
    engine_->stall(seconds(30));
    run_until(Time(seconds(25)));
    EXPECT_LT(engine_->last_progress(), Time(milliseconds(300)));
    run();
    EXPECT_EQ(watcher.tokens.size(), 100u);
    EXPECT_GT(watcher.end, Time(seconds(30)));
}

TEST_F(SimEngineTest, ASlowEngineTakesLongerForItsSteps) {
    engine();
    engine_->slow(3.0, seconds(10));
    Watcher& watcher = submit(job(100, 1));
    run();
    EXPECT_EQ(watcher.end, Time(milliseconds(330)));
}

TEST_F(SimEngineTest, NeighboursThatComputeSlowItDown) {
    EngineParameters p = simple();
    p.neighbour_share = 0.5;
    SimEngine neighbour(queue_, p);
    engine(p).set_neighbours({&neighbour});
    Watcher own(queue_);
    neighbour.submit(job(1'000, 1), own);
    run_until(Time(milliseconds(1)));
    Watcher& watcher = submit(job(100, 1));
    run();
    EXPECT_EQ(watcher.end, Time(milliseconds(1 + 165)));
}

TEST_F(SimEngineTest, AnotherModelAnswersNobody) {
    engine();
    engine_->serve_other_model();
    Watcher& watcher = submit(job(100, 1));
    run();
    EXPECT_EQ(watcher.fault, LegFault::kMisconfigured);
}

TEST_F(SimEngineTest, APoisonedPromptBringsItDown) {
    engine();
    Watcher& other = submit(job(10, 1'000));
    Job poison = job(100, 1);
    poison.poison = true;
    Watcher& watcher = submit(poison);
    run();
    EXPECT_EQ(watcher.fault, LegFault::kUnavailable);
    EXPECT_EQ(other.fault, LegFault::kUnavailable);
    EXPECT_EQ(engine_->totals().crashes, 1u);
}

TEST_F(SimEngineTest, APrefillJobEndsWithItsFirstTokenAndHoldsItsBlocks) {
    engine();
    Job prefill = job(1'000, 50);
    prefill.phase = Job::Phase::kPrefill;
    Watcher& watcher = submit(prefill);
    run_until(Time(seconds(2)));
    EXPECT_EQ(watcher.tokens.size(), 1u);
    EXPECT_TRUE(watcher.handover);
    EXPECT_EQ(engine_->holds(), 1u);
    EXPECT_GT(engine_->cache().held(), 0u);
    engine_->release_hold(prefill.id);
    EXPECT_EQ(engine_->holds(), 0u);
    EXPECT_EQ(engine_->cache().held(), 0u);
}

TEST_F(SimEngineTest, AHoldThatNobodyAsksForEnds) {
    engine();
    Job prefill = job(1'000, 50);
    prefill.phase = Job::Phase::kPrefill;
    submit(prefill);
    run();
    EXPECT_GE(queue_.now(), Time(seconds(limits::kKvHoldSeconds)));
    EXPECT_EQ(engine_->holds(), 0u);
    EXPECT_EQ(engine_->cache().held(), 0u);
}

TEST_F(SimEngineTest, ADecodeJobWaitsForTheKvItBringsAndComputesNoPrompt) {
    engine();
    Job decode = job(1'000, 5);
    decode.phase = Job::Phase::kDecode;
    decode.answered = 1;
    decode.brings_kv = true;
    Watcher& watcher = submit(decode);
    run();
    EXPECT_EQ(watcher.pulled, Time(milliseconds(10)));
    EXPECT_EQ(watcher.tokens.size(), 4u);
    EXPECT_EQ(watcher.tokens.front(), Time(milliseconds(25)));
    EXPECT_EQ(engine_->totals().prefill_tokens, 0u);
}

TEST_F(SimEngineTest, ImagesAreEncodedBeforeTheirPromptOrByThemselves) {
    EngineParameters p = simple();
    p.encode_row_us = 100;
    engine(p);
    Job encode = job(1, 1);
    encode.phase = Job::Phase::kEncode;
    encode.image_tokens = 1'500;  // Two steps.
    Watcher& watcher = submit(encode);
    run();
    EXPECT_EQ(watcher.end, Time(milliseconds(170)));
    EXPECT_TRUE(watcher.tokens.empty());
    EXPECT_EQ(engine_->totals().encode_tokens, 1'500u);
}

// Whatever comes, is cancelled and crashes: each job ends once, and nothing stays.
TEST_F(SimEngineTest, RandomLivesLeaveNothing) {
    EngineParameters p = simple();
    p.blocks = 20;
    p.running_max = 8;
    p.waiting_max = 20;
    engine(p);
    trace::Random random(5);
    for (int i = 0; i < 3'000; ++i) {
        Job next =
            job(1 + random.next() % 4'000, 1 + random.next() % 1'500, 1 + random.next() % 20);
        if (random.next() % 4 == 0) next.phase = Job::Phase::kPrefill;
        const JobId id = next.id;
        submit(std::move(next));
        if (random.next() % 3 == 0) {
            queue_.after(milliseconds(random.next() % 20'000), [this, id] {
                engine_->cancel(id);
                engine_->release_hold(id);
            });
        }
        if (random.next() % 200 == 0) engine_->crash(seconds(1));
        run_until(queue_.now() + milliseconds(random.next() % 3'000));
    }
    run();
    EXPECT_EQ(engine_->running() + engine_->waiting() + engine_->holds(), 0u);
    EXPECT_EQ(engine_->cache().held(), 0u);
    std::size_t ended = 0;
    for (const auto& watcher : watchers_) {
        EXPECT_LE((watcher->end ? 1 : 0) + (watcher->handover ? 1 : 0) + (watcher->fault ? 1 : 0),
                  1);
        if (watcher->end) ++ended;
    }
    EXPECT_GT(ended, 200u);
    EXPECT_GT(engine_->totals().preemptions, 0u);
}

}  // namespace
}  // namespace sluice::sim
