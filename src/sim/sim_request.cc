#include "sim/sim_request.h"

#include <algorithm>
#include <utility>

#include "sim/sim_gateway.h"

namespace sluice::sim {
namespace {

using dispatch::LegFault;
using dispatch::LegPhase;
using Kind = dispatch::Action::Kind;

/// What a decode worker computes again rather than sending the request back to prefill.
constexpr std::uint64_t kRecomputeMax = 8'192;

Job::Phase job_phase(LegPhase phase) {
    switch (phase) {
        case LegPhase::kFull: return Job::Phase::kFull;
        case LegPhase::kEncode: return Job::Phase::kEncode;
        case LegPhase::kPrefill: return Job::Phase::kPrefill;
        case LegPhase::kDecode: return Job::Phase::kDecode;
    }
    return Job::Phase::kFull;
}

}  // namespace

SimRequest::SimRequest(SimGateway& gateway, const SimWork& work, std::uint64_t number)
    : gateway_(gateway),
      work_(work),
      number_(number),
      progress_(gateway.queue().now(), gateway.options().deadline) {
    arm_timer();
}

SimRequest::~SimRequest() { gateway_.queue().cancel(timer_); }

std::uint64_t SimRequest::tokens() const { return work_.prompt_tokens + progress_.tokens(); }

// ---- Events and actions ---------------------------------------------------------------------------

void SimRequest::advance(const dispatch::Event& event) {
    for (const dispatch::Action& action : progress_.on(event, gateway_.queue().now()))
        perform(action);
    arm_timer();
}

void SimRequest::perform(const dispatch::Action& action) {
    switch (action.kind) {
        case Kind::kSeek: return seek();
        case Kind::kWait:
            if (!gateway_.wait(*this)) advance(dispatch::QueueFull{});
            return;
        case Kind::kStartLeg:
        case Kind::kResumeLeg: return start_leg();
        case Kind::kEndLeg: return end_leg();
        case Kind::kBlame:
            return gateway_.fleet().report_fault(pick_.lease.worker(), LegFault::kStalled,
                                                 leg_began_);
        case Kind::kRelease: return release_hold();
        case Kind::kFail:
            if (action.failure == dispatch::Failure::kWorkersLost) gateway_.quarantine(work_);
            return;
        case Kind::kFinish: return gateway_.finished(*this);
    }
}

// One that is armed for too early a time costs a look; one that is armed anew for each token costs
// more.
void SimRequest::arm_timer() {
    if (progress_.over()) return gateway_.queue().cancel(timer_);
    Time due = progress_.next_due();
    if (job_) due = std::min(due, last_news_ + gateway_.options().fleet.stall_time);
    if (armed_for_ && *armed_for_ <= due) return;
    gateway_.queue().cancel(timer_);
    armed_for_ = due;
    timer_ = gateway_.queue().at(due, [this] { on_timer(); });
}

void SimRequest::on_timer() {
    armed_for_.reset();
    const Time now = gateway_.queue().now();
    if (job_) {
        // Frames without tokens count: a worker sends them for what it computes, and what waits there.
        const SimEngine& engine = gateway_.fleet().engine(pick_.lease.worker());
        last_news_ = std::max(last_news_, engine.last_progress());
        const bool stalled = last_news_ + gateway_.options().fleet.stall_time <= now;
        if (stalled) return break_leg(LegFault::kStalled);
    }
    advance(dispatch::Tick{});
}

/// What computes again after a loss waits for its turn.
bool SimRequest::take_turn() {
    if (!progress_.after_loss() || progress_.wanted() == LegPhase::kDecode) return true;
    if (!turn_.active()) turn_ = gateway_.ask_turn(*this);
    return turn_.active();
}

void SimRequest::seek() {
    if (!take_turn()) return advance(dispatch::Paced{});
    const LegPhase wanted = progress_.wanted();
    const bool full = wanted == LegPhase::kPrefill && !gateway_.fleet().splits();
    auto pick = gateway_.pick(*this, full ? LegPhase::kFull : wanted);
    if (!pick) {
        gateway_.end_turn(turn_);
        return advance(dispatch::NoWorker{pick.error()});
    }
    pick_ = std::move(*pick);
    advance(dispatch::WorkerFound{.pool = 0,
                                  .worker = pick_.lease.worker(),
                                  .rules = gateway_.options().rules,
                                  .leg = full ? LegPhase::kFull : wanted});
}

Job SimRequest::job() const {
    const LegPhase phase = progress_.leg();
    const bool decode = phase == LegPhase::kDecode;
    return {
        .id = *job_,
        .phase = job_phase(phase),
        .chain = work_.chain,
        .prompt_tokens = work_.prompt_tokens,
        .answer_tokens = work_.answer_tokens,
        .answered = static_cast<std::uint32_t>(progress_.tokens()),
        .image_tokens = phase == LegPhase::kEncode ? work_.image_tokens : 0,
        .brings_kv = decode && hold_ && gateway_.fleet().engine(hold_->worker).holds(hold_->job),
        .poison = work_.poison};
}

void SimRequest::start_leg() {
    const Time now = gateway_.queue().now();
    job_ = gateway_.next_job();
    leg_began_ = now;
    last_news_ = now;
    leg_has_token_ = false;
    SimEngine& engine = gateway_.fleet().engine(pick_.lease.worker());
    engine.submit(job(), *this);
    if (progress_.leg() == LegPhase::kEncode) return;
    gateway_.fleet().registry().expect(pick_.lease.worker(), *work_.chain, now);
}

void SimRequest::end_leg() {
    if (!job_) return;
    gateway_.fleet().engine(pick_.lease.worker()).cancel(*std::exchange(job_, std::nullopt));
    gateway_.end_turn(turn_);
    pick_ = {};
    gateway_.on_room();
}

void SimRequest::release_hold() {
    if (!hold_) return;
    gateway_.fleet().engine(hold_->worker).release_hold(hold_->job);
    hold_.reset();
}

void SimRequest::leave(routing::WorkerIndex worker) {
    if (!job_ || pick_.lease.worker() != worker) return;
    advance(dispatch::WorkerClosed{.worker = worker, .running = dispatch::Running::kEvacuate});
}

// ---- A leg's news ---------------------------------------------------------------------------------

void SimRequest::on_admitted(const CachedTokens& cached) {
    if (std::exchange(ran_, true)) return;
    cached_ = cached;
}

void SimRequest::on_token() {
    const Time now = gateway_.queue().now();
    last_news_ = now;
    if (const auto last = progress_.marks().last_token) gaps_.add(now - *last);
    if (!std::exchange(leg_has_token_, true)) {
        const double took = seconds(now - leg_began_);
        gateway_.fleet().registry().on_first_token(pick_.lease.worker(), pick_.work, took);
        pick_.lease.prefill_left(0);
        gateway_.end_turn(turn_);
    }
    gateway_.count_token();
    if (progress_.tokens() == 0) advance(dispatch::AnswerBegun{});
    advance(dispatch::TokensCame{1});
}

void SimRequest::on_handover() {
    hold_ = Hold{.worker = pick_.lease.worker(), .job = *job_};
    gateway_.fleet().report_success(pick_.lease.worker(), leg_began_);
    advance(dispatch::HandedOver{});
}

void SimRequest::on_pulled() {
    last_news_ = gateway_.queue().now();
    if (!hold_) return;
    // Its source may have died in the middle.
    if (!gateway_.fleet().engine(hold_->worker).holds(hold_->job) && tokens() > kRecomputeMax)
        return break_leg(LegFault::kBlocksLost);
    release_hold();
    advance(dispatch::Progressed{});
}

void SimRequest::on_end() {
    gateway_.fleet().report_success(pick_.lease.worker(), leg_began_);
    if (progress_.leg() == LegPhase::kEncode) return advance(dispatch::Encoded{});
    advance(dispatch::LegEnded{});
}

void SimRequest::on_fault(LegFault fault) { break_leg(fault); }

void SimRequest::break_leg(LegFault fault) {
    gateway_.fleet().report_fault(pick_.lease.worker(), fault, leg_began_);
    advance(dispatch::LegFailed{fault});
}

RequestResult SimRequest::result() const {
    const dispatch::Marks& marks = progress_.marks();
    const Time until = marks.ended.value_or(gateway_.queue().now());
    RequestResult result{.arrival = marks.arrival.time_since_epoch(),
                         .prompt_tokens = work_.prompt_tokens,
                         .answer_tokens = static_cast<std::uint32_t>(progress_.tokens()),
                         .cached = cached_,
                         .ran = ran_,
                         .outcome = progress_.outcome(),
                         .gaps = gaps_,
                         .duration = until - marks.arrival,
                         .retries = progress_.retries(),
                         .resumes = progress_.resumes(),
                         .fallbacks = progress_.fallbacks()};
    if (marks.first_token) result.ttft = *marks.first_token - marks.arrival;
    return result;
}

}  // namespace sluice::sim
