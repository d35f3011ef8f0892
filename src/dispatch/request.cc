#include "dispatch/request.h"

#include <algorithm>

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

Time Request::next_due() const { return found_by_ ? std::min(*found_by_, deadline_) : deadline_; }

Actions Request::take(const Prepared&, Time) {
    if (phase_ != Phase::kArriving) return {};
    phase_ = Phase::kQueued;
    stage_ = Stage::kSeeking;
    return {{Kind::kSeek}};
}

Actions Request::take(const WorkerFound& found, Time now) {
    if (stage_ != Stage::kSeeking) return {};
    stage_ = Stage::kRunning;
    pool_ = found.pool;
    worker_ = found.worker;
    rules_ = found.rules;
    tried_.rule = rules_.tried;
    found_by_.reset();
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
    stage_ = Stage::kWaiting;
    return {{Kind::kWait}};
}

Actions Request::take(const WorkerAvailable&, Time) {
    if (stage_ != Stage::kWaiting) return {};
    stage_ = Stage::kSeeking;
    return {{Kind::kSeek}};
}

Actions Request::take(const QueueFull&, Time now) {
    if (stage_ != Stage::kWaiting) return {};
    // Who had a worker and lost it is not turned away, but failed.
    if (losses_ > 0) return fail(Failure::kNoWorker, Outcome::kWorkerLost, now);
    return fail(Failure::kQueueFull, Outcome::kRejected, now);
}

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
    tried_.workers.clear();
    return {};
}

Actions Request::take(const LegEnded&, Time now) {
    if (stage_ != Stage::kRunning) return {};
    end(Outcome::kOk, now);
    return {{Kind::kEndLeg}, {Kind::kFinish}};
}

Actions Request::take(const LegFailed& failed, Time now) {
    if (stage_ != Stage::kRunning) return {};
    last_fault_ = failed.fault;
    if (failed.fault == LegFault::kRefused) return fail(Failure::kRefused, Outcome::kRejected, now);
    if (begun_ && !rules_.resumable) return fail(Failure::kCutOff, Outcome::kError, now);
    tried_.add(worker_);
    if (failed.fault == LegFault::kFull) {
        // Full is no fault of the request's, and not the worker's loss. Asked once more each, all
        // workers that are full are a full service.
        tried_.rule = routing::Tried::Rule::kExclude;
    } else if (++losses_ >= rules_.losses_max) {
        return fail(Failure::kWorkersLost, Outcome::kWorkerLost, now);
    }
    ++(must_resume() ? resumes_ : retries_);
    found_by_ = now + rules_.patience;
    return seek_again();
}

Actions Request::take(const Refused&, Time now) {
    return fail(Failure::kRefused, Outcome::kRejected, now);
}

Actions Request::take(const CannotResume&, Time now) {
    return fail(Failure::kOtherModel, Outcome::kWorkerLost, now);
}

Actions Request::take(const ClientGone&, Time now) {
    end(Outcome::kClientGone, now);
    return {{Kind::kEndLeg}, {Kind::kFinish}};
}

Actions Request::take(const PoolClosed& closed, Time now) {
    // What waits is asked for its pool again when a worker is sought.
    const bool leaves = closed.running == PoolClosed::Running::kEvacuate && pool_ == closed.pool &&
                        stage_ == Stage::kRunning;
    if (!leaves || (begun_ && !rules_.resumable)) return {};
    ++(must_resume() ? resumes_ : retries_);
    found_by_ = now + rules_.patience;
    return seek_again();
}

Actions Request::take(const Abandoned&, Time now) {
    return fail(Failure::kStopping, Outcome::kError, now);
}

Actions Request::take(const Tick&, Time now) {
    if (now >= deadline_) return fail(Failure::kDeadline, timeout(), now);
    if (found_by_ && now >= *found_by_) {
        return fail(Failure::kNoWorker, Outcome::kWorkerLost, now);
    }
    return {};
}

Actions Request::seek_again() {
    stage_ = Stage::kSeeking;
    return {{Kind::kEndLeg}, {Kind::kSeek}};
}

Actions Request::fail(Failure failure, Outcome outcome, Time now) {
    end(outcome, now);
    return {{Kind::kEndLeg}, {Kind::kFail, failure}, {Kind::kFinish}};
}

void Request::end(Outcome outcome, Time now) {
    phase_ = Phase::kOver;
    stage_ = Stage::kIdle;
    outcome_ = outcome;
    marks_.ended = now;
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
