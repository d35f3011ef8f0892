#include "dispatch/request.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::dispatch {
namespace {

using Kind = Action::Kind;

}  // namespace

Actions::Actions(std::initializer_list<Action> actions)
    : size_(static_cast<std::uint8_t>(actions.size())) {
    SLUICE_ASSERT(actions.size() <= actions_.size());
    std::ranges::copy(actions, actions_.begin());
}

void Actions::add(Action action) {
    SLUICE_ASSERT(size_ < actions_.size());
    actions_[size_++] = action;
}

Request::Request(Time arrival, std::chrono::milliseconds deadline)
    : marks_{.arrival = arrival,
             .dispatched = {},
             .first_token = {},
             .last_token = {},
             .ended = {}},
      deadline_(arrival + deadline) {}

Actions Request::on(const Event& event, Time now) {
    if (over()) return {};
    return std::visit([&](const auto& each) { return take(each, now); }, event);
}

Time Request::next_due() const {
    Time due = deadline_;
    if (found_by_) due = std::min(due, *found_by_);
    if (alive_by_) due = std::min(due, *alive_by_);
    return due;
}

LegPhase Request::wanted() const {
    if (to_encode_) return LegPhase::kEncode;
    if (held_) return LegPhase::kDecode;
    return failed_handovers_ >= rules_.handovers_max ? LegPhase::kFull : LegPhase::kPrefill;
}

// ---- A worker is sought ---------------------------------------------------------------------------

Actions Request::take(const Prepared& prepared, Time) {
    if (phase_ != Phase::kArriving) return {};
    phase_ = Phase::kQueued;
    stage_ = Stage::kSeeking;
    to_encode_ = prepared.has_images;
    return {{Kind::kSeek}};
}

Actions Request::take(const WorkerFound& found, Time now) {
    if (stage_ != Stage::kSeeking) return {};
    SLUICE_ASSERT(found.leg == wanted() || found.leg == LegPhase::kFull);
    stage_ = Stage::kRunning;
    pool_ = found.pool;
    worker_ = found.worker;
    rules_ = found.rules;
    tried_.rule = rules_.tried;
    leg_ = found.leg;
    found_by_.reset();
    expect_life(now);
    if (!marks_.dispatched) marks_.dispatched = now;
    if (phase_ == Phase::kQueued) phase_ = Phase::kPrefill;
    return {{must_resume() ? Kind::kResumeLeg : Kind::kStartLeg}};
}

Actions Request::take(const NoWorker& none, Time now) {
    if (stage_ != Stage::kSeeking) return {};
    // Where it failed it may not go again: there is nothing to wait for.
    const bool tried_all = tried_.rule == routing::Tried::Rule::kExclude &&
                           !tried_.workers.empty() && none.why != routing::NoPick::kAllBusy;
    if (tried_all && last_fault_ == LegFault::kFull)
        return fail(Failure::kQueueFull, Outcome::kRejected, now);
    if (tried_all) return fail(Failure::kNoOtherWorker, Outcome::kError, now);
    // There are workers, and its turn will come: only without any does its patience run out.
    if (found_by_ && none.why == routing::NoPick::kAllBusy) found_by_ = now + rules_.patience;
    stage_ = Stage::kWaiting;
    return {{Kind::kWait}};
}

Actions Request::take(const Paced&, Time) {
    if (stage_ != Stage::kSeeking) return {};
    // Its turn will come: patience is for where there is nobody.
    found_by_.reset();
    paced_ = true;
    stage_ = Stage::kWaiting;
    return {};
}

Actions Request::take(const WorkerAvailable&, Time now) {
    if (stage_ != Stage::kWaiting) return {};
    if (std::exchange(paced_, false)) found_by_ = now + rules_.patience;
    stage_ = Stage::kSeeking;
    return {{Kind::kSeek}};
}

Actions Request::take(const QueueFull&, Time now) {
    if (stage_ != Stage::kWaiting) return {};
    // Who had a worker and lost it is not turned away, but failed.
    if (found_by_) return fail(Failure::kNoWorker, Outcome::kWorkerLost, now);
    return fail(Failure::kQueueFull, Outcome::kRejected, now);
}

// ---- A leg runs -----------------------------------------------------------------------------------

Actions Request::take(const AnswerBegun&, Time) {
    begun_ = true;
    return {};
}

Actions Request::take(const TokensCame& came, Time now) {
    if (stage_ != Stage::kRunning || came.tokens == 0) return {};
    if (tokens_ == 0) marks_.first_token = now;
    marks_.last_token = now;
    tokens_ += came.tokens;
    phase_ = Phase::kDecode;
    // It got on: what was lost before counts no more, and who was tried may be tried again.
    losses_ = 0;
    not_taken_ = 0;
    after_loss_ = false;
    tried_.workers.clear();
    Actions actions;
    if (leg_ != LegPhase::kPrefill) {
        decode_losses_ = 0;
        failed_handovers_ = 0;
        // A decode worker that answers has acknowledged what it took over.
        if (leg_ == LegPhase::kDecode) held_ = false;
        add_release(actions);
    }
    alive_by_.reset();
    if (rules_.stall_time.count() > 0) alive_by_ = now + rules_.stall_time;
    return actions;
}

Actions Request::take(const Progressed&, Time now) {
    if (stage_ == Stage::kRunning && alive_by_) expect_life(now);
    return {};
}

Actions Request::take(const Encoded&, Time) {
    if (stage_ != Stage::kRunning || leg_ != LegPhase::kEncode) return {};
    to_encode_ = false;
    return go_on();
}

Actions Request::take(const HandedOver&, Time now) {
    if (stage_ != Stage::kRunning || leg_ != LegPhase::kPrefill) return {};
    held_ = true;
    found_by_ = now + rules_.patience;
    return go_on();
}

Actions Request::take(const LegEnded&, Time now) {
    if (stage_ != Stage::kRunning) return {};
    return end(Outcome::kOk, now);
}

// ---- A leg breaks ---------------------------------------------------------------------------------

Actions Request::take(const LegFailed& failed, Time now) {
    if (stage_ != Stage::kRunning) return {};
    return lose_leg(failed.fault, now);
}

Actions Request::lose_leg(LegFault fault, Time now) {
    last_fault_ = fault;
    if (fault == LegFault::kRefused) return fail(Failure::kRefused, Outcome::kRejected, now);
    if (begun_ && !rules_.resumable) return fail(Failure::kCutOff, Outcome::kError, now);
    if (leg_ == LegPhase::kDecode && held_) {
        ++failed_handovers_;
        ++fallbacks_;
    }
    if (fault != LegFault::kBlocksLost) tried_.add(worker_);
    if (fault == LegFault::kFull) {
        // Full is no fault of the request's, and not the worker's loss. Asked once more each, all
        // workers that are full are a full service.
        tried_.rule = routing::Tried::Rule::kExclude;
    } else if (fault == LegFault::kNotTaken && ++not_taken_ < rules_.not_taken_max) {
        // What never ran there says nothing of the request.
    } else if (fault != LegFault::kBlocksLost && count_loss()) {
        return fail(Failure::kWorkersLost, Outcome::kWorkerLost, now);
    }
    // Blocks that could not be had cost a computation, and nobody's answer.
    if (fault != LegFault::kBlocksLost) ++(must_resume() ? resumes_ : retries_);
    after_loss_ = must_resume();
    found_by_ = now + rules_.patience;
    return start_over();
}

bool Request::count_loss() {
    ++losses_;
    if (leg_ == LegPhase::kDecode) ++decode_losses_;
    return std::max(losses_, decode_losses_) >= rules_.losses_max;
}

Actions Request::take(const PoolClosed& closed, Time now) {
    // What waits is asked for its pool again when a worker is sought.
    return pool_ == closed.pool ? leave(closed.running, now) : Actions{};
}

Actions Request::take(const WorkerClosed& closed, Time now) {
    return worker_ == closed.worker ? leave(closed.running, now) : Actions{};
}

Actions Request::leave(Running running, Time now) {
    if (running != Running::kEvacuate || stage_ != Stage::kRunning) return {};
    if (begun_ && !rules_.resumable) return {};
    ++(must_resume() ? resumes_ : retries_);
    after_loss_ = must_resume();
    found_by_ = now + rules_.patience;
    return start_over();
}

// ---- The end --------------------------------------------------------------------------------------

Actions Request::take(const Refused&, Time now) {
    return fail(Failure::kRefused, Outcome::kRejected, now);
}

Actions Request::take(const CannotResume&, Time now) {
    return fail(Failure::kOtherModel, Outcome::kWorkerLost, now);
}

Actions Request::take(const ClientGone&, Time now) { return end(Outcome::kClientGone, now); }

Actions Request::take(const Abandoned&, Time now) {
    return fail(Failure::kStopping, Outcome::kError, now);
}

Actions Request::take(const Tick&, Time now) {
    if (now >= deadline_) return fail(Failure::kDeadline, timeout(), now);
    if (found_by_ && now >= *found_by_) return fail(Failure::kNoWorker, Outcome::kWorkerLost, now);
    if (!alive_by_ || now < *alive_by_) return {};
    Actions actions{{Kind::kBlame}};
    for (const Action& action : lose_leg(LegFault::kStalled, now)) actions.add(action);
    return actions;
}

void Request::expect_life(Time now) {
    alive_by_.reset();
    std::chrono::milliseconds time = rules_.stall_time;
    if (leg_ == LegPhase::kEncode) time = rules_.encode_time;
    if (leg_ == LegPhase::kDecode) time = rules_.handover_time;
    if (time.count() > 0) alive_by_ = now + time;
}

Actions Request::go_on() {
    stage_ = Stage::kSeeking;
    alive_by_.reset();
    return {{Kind::kEndLeg}, {Kind::kSeek}};
}

Actions Request::start_over() {
    stage_ = Stage::kSeeking;
    alive_by_.reset();
    Actions actions{{Kind::kEndLeg}};
    add_release(actions);
    actions.add({Kind::kSeek});
    return actions;
}

void Request::add_release(Actions& actions) {
    if (std::exchange(held_, false)) actions.add({Kind::kRelease});
}

Actions Request::fail(Failure failure, Outcome outcome, Time now) {
    Actions actions{{Kind::kEndLeg}};
    add_release(actions);
    actions.add({Kind::kFail, failure});
    for (const Action& action : end(outcome, now))
        if (action.kind == Kind::kFinish) actions.add(action);
    return actions;
}

Actions Request::end(Outcome outcome, Time now) {
    phase_ = Phase::kOver;
    stage_ = Stage::kIdle;
    outcome_ = outcome;
    marks_.ended = now;
    alive_by_.reset();
    Actions actions{{Kind::kEndLeg}};
    add_release(actions);
    actions.add({Kind::kFinish});
    return actions;
}

Outcome Request::timeout() const {
    switch (phase_) {
        case Phase::kArriving:
        case Phase::kQueued: return Outcome::kTimeoutQueue;
        case Phase::kPrefill: return Outcome::kTimeoutPrefill;
        case Phase::kDecode:
        case Phase::kOver: return Outcome::kTimeoutDecode;
    }
    return Outcome::kTimeoutDecode;
}

}  // namespace sluice::dispatch
