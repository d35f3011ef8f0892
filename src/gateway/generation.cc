#include "gateway/generation.h"
#include "gateway/cache_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "gateway/answer_writer.h"
#include "gateway/output_check.h"
#include "gateway/random_id.h"

namespace sluice::gateway {
namespace {

using dispatch::Failure;
using dispatch::LegFault;
using protocol::ApiError;
using protocol::ApiErrorCode;
using std::chrono::steady_clock;
using Kind = dispatch::Action::Kind;

/// Before any engine has counted: four bytes of JSON a token.
constexpr std::uint64_t kBytesPerToken = 4;

}  // namespace

Generation::Generation(GenerationServices& services, InboundRequest request)
    : services_(services),
      request_(std::move(request)),
      rid_(draw_rid()),
      wall_time_(std::chrono::system_clock::now()),
      progress_(steady_clock::now(), request_.deadline) {
    if (request_.request_id.empty()) request_.request_id = rid_;
}

Generation::~Generation() = default;

// ---- Arrival --------------------------------------------------------------------------------------

void Generation::start() {
    services_.probe.stream_opened();
    const std::weak_ptr<Generation> weak = weak_from_this();
    request_.exchange->on_client_gone([weak] {
        if (const auto self = weak.lock()) self->advance(dispatch::ClientGone{});
    });
    arm_timer();
    for (RequestObserver* observer : services_.observers) observer->on_arrival(*this);
    auto outline = protocol::read_outline(request_.body());
    if (!outline) return refuse(protocol::to_api_error(outline.error()));
    request_.outline = std::move(*outline);
    if (request_.patient && request_.outline.stream) {
        request_.patient->promise_stream({{"x-request-id", request_.request_id}},
                                         services_.headers_after);
    }
    if (!services_.steering.serves(request_.outline.model))
        return refuse(protocol::model_not_found(request_.outline.model));
    admit();
}

void Generation::start_copy(const Generation& original, Pool& pool) {
    services_.probe.stream_opened();
    copy_to_ = &pool;
    collecting_ = true;
    arm_timer();
    for (RequestObserver* observer : services_.observers) observer->on_arrival(*this);
    if (pool.recipe() != nullptr && pool.recipe() == original.recipe_) {
        recipe_ = original.recipe_;
        prepared_ = original.prepared_;
    }
    first_pool();
}

void Generation::admit() {
    if (services_.admission == nullptr) return on_verdict({.refused = {}, .retry_after = {}});
    const std::weak_ptr<Generation> weak = weak_from_this();
    ticket_ = services_.admission->admit(request_, [weak](const AdmissionVerdict& verdict) {
        if (const auto self = weak.lock()) self->on_verdict(verdict);
    });
}

void Generation::on_verdict(const AdmissionVerdict& verdict) {
    if (progress_.over()) return;
    request_.tenant = verdict.tenant;
    request_.salt = verdict.salt;
    request_.own_salt = verdict.own_salt;
    request_.retention = retention_of(request_, verdict.retention);
    request_.priority = verdict.priority;
    retry_after_ = verdict.retry_after;
    if (verdict.refused) return refuse(*verdict.refused);
    if (!verdict.may_pin) request_.pinned_pool.clear();
    const net::HttpHeaders& headers = request_.exchange->request().headers;
    request_.conversation = protocol::conversation_key(
        request_.outline, headers.find("x-sluice-conversation").value_or(""), request_.tenant);
    first_pool();
}

void Generation::first_pool() {
    const auto pool = choose();
    if (!pool) return refuse(pool.error());
    turn_to(**pool, [this] { advance(dispatch::Prepared{}); });
}

void Generation::refuse(const ApiError& error) {
    refusal_ = error;
    advance(dispatch::Refused{});
}

// ---- The pool -------------------------------------------------------------------------------------

std::expected<Pool*, ApiError> Generation::choose() const {
    if (copy_to_ != nullptr) return copy_to_;
    if (!request_.pinned_pool.empty()) return pinned();
    Pool* const pool =
        services_.steering.choose(request_, progress_.must_resume() ? pool_ : nullptr);
    if (pool == nullptr) return std::unexpected(error_of(Failure::kNoWorker));
    return pool;
}

std::expected<Pool*, ApiError> Generation::pinned() const {
    const auto refused = [](ApiErrorCode code, std::string why) {
        return std::unexpected(
            ApiError{.code = code, .message = std::move(why), .param = "x-sluice-pool"});
    };
    Pool* const pool = services_.pools.find(request_.pinned_pool);
    if (pool == nullptr) {
        return refused(ApiErrorCode::kInvalidRequest,
                       fmt::format("there is no pool \"{}\" here", request_.pinned_pool));
    }
    if (auto why = services_.steering.refuse_pin(*pool))
        return refused(ApiErrorCode::kUnsupported, std::move(*why));
    return pool;
}

/// Makes the request ready for `pool`, now or a little later, unless it fails on the way.
void Generation::turn_to(Pool& pool, std::function<void()> then) {
    const bool same_recipe = pool.recipe() != nullptr && pool.recipe() == recipe_;
    if (runner_ && (&pool == pool_ || same_recipe)) {
        // It may hold an answer that has begun, and goes on in any pool of its kind.
        if (pool_ != &pool) meter_ = services_.probe.meter(pool.name());
        pool_ = &pool;
        return then();
    }
    if (prepared_ && same_recipe) return on_prepared(pool, prepared_, then);
    if (!pool.slow_to_prepare(request_)) return on_prepared(pool, pool.prepare(request_), then);
    // The body stays valid: the request holds its exchange.
    auto result = std::make_shared<std::optional<Prepared>>();
    const auto self = shared_from_this();
    const bool accepted = services_.beside_loop(
        [self, &pool, result] { *result = pool.prepare(self->request_); },
        [self, &pool, result, then] { self->on_prepared(pool, **result, then); });
    if (!accepted) {
        refuse({.code = ApiErrorCode::kQueueFull,
                .message = "too many long requests are being prepared; try again in a moment",
                .param = {}});
    }
}

void Generation::on_prepared(Pool& pool, const Prepared& prepared,
                             const std::function<void()>& then) {
    if (progress_.over()) return;
    if (!prepared) return refuse(prepared.error());
    prepared_ = *prepared;
    if (is_quarantined()) {
        return refuse({.code = ApiErrorCode::kRequestQuarantined,
                       .message = "workers were lost with this prompt, more than one in a row; it "
                                  "is not tried again for a while",
                       .param = {}});
    }
    recipe_ = pool.recipe();
    pool_ = &pool;
    meter_ = services_.probe.meter(pool.name());
    // The runner before may be what called: it goes once it has returned.
    if (runner_) services_.loop.post([old = std::shared_ptr<LegRunner>(std::move(runner_))] {});
    runner_ = pool.make_runner(request_, prepared_, *this);
    if (collecting_) runner_->collect();
    then();
}

// ---- Events and actions ---------------------------------------------------------------------------

void Generation::advance(const dispatch::Event& event) {
    const auto self = shared_from_this();
    for (const dispatch::Action& action : progress_.on(event, steady_clock::now())) perform(action);
    arm_timer();
}

void Generation::perform(const dispatch::Action& action) {
    switch (action.kind) {
        case Kind::kSeek: return seek();
        case Kind::kWait:
            if (!services_.wait_for_worker(*this)) advance(dispatch::QueueFull{});
            return;
        case Kind::kStartLeg:
        case Kind::kResumeLeg: return start_leg();
        case Kind::kEndLeg: return end_leg();
        case Kind::kBlame: return blame();
        case Kind::kRelease:
            if (runner_) runner_->release();
            return;
        case Kind::kFail: return fail(action.failure);
        case Kind::kFinish: return finish();
    }
}

void Generation::arm_timer() {
    if (progress_.over()) return timer_.cancel();
    const dispatch::Time due = progress_.next_due();
    if (armed_for_ == due) return;
    armed_for_ = due;
    const std::weak_ptr<Generation> weak = weak_from_this();
    timer_ = services_.loop.call_after(due - steady_clock::now(), [weak] {
        const auto self = weak.lock();
        if (!self) return;
        self->armed_for_.reset();
        self->advance(dispatch::Tick{});
    });
}

void Generation::seek() {
    const auto pool = choose();
    if (!pool) return refuse(pool.error());
    // The client has this pool's tokens, or its head: another engine can't go on with them.
    const bool bound = progress_.must_resume() && (*pool)->recipe() != recipe_;
    if (bound) return advance(dispatch::CannotResume{});
    turn_to(**pool, [this] { pick(); });
}

bool Generation::take_turn() {
    if (!progress_.after_loss() || progress_.wanted() == routing::LegPhase::kDecode) return true;
    if (turn_.active()) return true;
    auto turn = services_.resumes.ask(*this, *pool_, runner_->demand().tokens);
    if (turn) turn_ = std::move(*turn);
    return turn.has_value();
}

void Generation::pick() {
    if (!take_turn()) return advance(dispatch::Paced{});
    LegDemand demand = runner_->demand();
    demand.phase = progress_.wanted();
    auto assignment = pool_->pick(demand, progress_.tried());
    if (!assignment) {
        services_.resumes.end(turn_);
        return advance(dispatch::NoWorker{assignment.error()});
    }
    assignment_ = std::move(*assignment);
    services_.probe.lease_began(assignment_.leg);
    advance(dispatch::WorkerFound{.pool = pool_->index(),
                                  .worker = assignment_.lease.worker(),
                                  .rules = pool_->rules(),
                                  .leg = assignment_.leg});
}

void Generation::start_leg() {
    if (legs_.empty())
        for (RequestObserver* observer : services_.observers) observer->on_dispatch(*this);
    legs_.push_back({.pool = pool_->name(),
                     .worker = assignment_.worker,
                     .phase = std::string(routing::to_string(assignment_.leg)),
                     .versions = assignment_.info,
                     .began = since_arrival(steady_clock::now())});
    const auto started = runner_->start(assignment_);
    if (started) return;
    if (started.error() == LegRunner::NoStart::kOtherModel)
        return advance(dispatch::CannotResume{});
    advance(dispatch::Refused{});
}

void Generation::blame() {
    last_error_ = fmt::format("the worker at {} showed no sign of life", assignment_.url);
    legs_.back().fault = last_error_;
    log::warn("request {} leaves worker {}: it shows no sign of life", request_.request_id,
              assignment_.url);
    pool_->report_fault(assignment_.lease.worker(), LegFault::kStalled,
                        progress_.marks().arrival + legs_.back().began);
}

void Generation::end_leg() {
    if (runner_) runner_->stop();
    services_.resumes.end(turn_);
    if (!assignment_.lease.active()) return;
    Pool* const pool = assignment_.pool;
    legs_.back().ended = since_arrival(steady_clock::now());
    services_.probe.lease_ended(assignment_.leg);
    assignment_ = {};
    services_.on_room(*pool);
}

void Generation::worker_available() { advance(dispatch::WorkerAvailable{}); }

void Generation::pool_closed(routing::PoolIndex pool, dispatch::Running running) {
    advance(dispatch::PoolClosed{.pool = pool, .running = running});
}

void Generation::worker_closed(routing::WorkerIndex worker) {
    if (!assignment_.lease.active() || assignment_.lease.worker() != worker) return;
    // What nobody else can go on with finishes where it is.
    if (!has_other_worker()) return;
    const std::uint32_t resumes = progress_.resumes();
    const auto self = shared_from_this();
    advance(dispatch::WorkerClosed{.worker = worker, .running = dispatch::Running::kEvacuate});
    if (progress_.resumes() > resumes) services_.probe.resumed("drained");
}

/// One that is ready, and that can go on with the tokens that came, if any did.
bool Generation::has_other_worker() const {
    const auto& mine = assignment_.info;
    return std::ranges::any_of(pool_->workers(), [&](const WorkerView& other) {
        if (other.name == assignment_.worker || other.state != "ready") return false;
        if (!progress_.must_resume()) return true;
        return mine && other.versions && port::compute_alike(*other.versions, *mine);
    });
}

bool Generation::can_go_on_in(const Pool& pool) const {
    if (!progress_.must_resume()) return true;
    const auto mine = legs_.empty() ? nullptr : legs_.back().versions;
    if (recipe_ == nullptr || pool.recipe() != recipe_ || !mine) return false;
    return std::ranges::any_of(pool.workers(), [&](const WorkerView& worker) {
        return worker.versions && port::compute_alike(*worker.versions, *mine);
    });
}

void Generation::abandon() { advance(dispatch::Abandoned{}); }

void Generation::collect() {
    collecting_ = true;
    if (runner_) runner_->collect();
}

// ---- A leg's news ---------------------------------------------------------------------------------

void Generation::on_answer_begun() { advance(dispatch::AnswerBegun{}); }

void Generation::on_tokens(std::uint32_t tokens) {
    const auto now = steady_clock::now();
    if (legs_.back().tokens == 0) on_leg_first_token(now);
    legs_.back().tokens += tokens;
    if (const auto last = progress_.marks().last_token) {
        gaps_.add(now - *last, tokens);
        const double gap = std::chrono::duration<double>(now - *last).count() / tokens;
        for (std::uint32_t i = 0; i < tokens; ++i) meter_->tbt.observe(gap);
    } else {
        meter_->ttft.observe(std::chrono::duration<double>(since_arrival(now)).count());
    }
    services_.resumes.end(turn_);
    advance(dispatch::TokensCame{tokens});
    if (services_.move_every && legs_.back().tokens >= *services_.move_every) move_on_purpose();
}

/// Later: the leg is at work.
void Generation::move_on_purpose() {
    services_.loop.post(
        [weak = weak_from_this(), leg = legs_.size(), worker = assignment_.lease.worker()] {
            const auto self = weak.lock();
            if (!self || self->legs_.size() != leg || !self->assignment_.lease.active()) return;
            self->advance(
                dispatch::WorkerClosed{.worker = worker, .running = dispatch::Running::kEvacuate});
        });
}

void Generation::on_progress(std::uint64_t computed) {
    // What is computed already keeps nobody waiting.
    const std::uint64_t all = assignment_.lease.load().kv_tokens;
    assignment_.lease.prefill_left(all - std::min(all, computed));
    advance(dispatch::Progressed{});
}

void Generation::on_handed_over() {
    pool_->report_success(assignment_.lease.worker());
    advance(dispatch::HandedOver{});
}

void Generation::on_leg_first_token(dispatch::Time now) {
    const std::chrono::duration<double> took = since_arrival(now) - legs_.back().began;
    pool_->report_first_token(assignment_.lease.worker(), assignment_.work, took.count());
    // The prompt is computed; what counts against the worker now is what it keeps.
    assignment_.lease.prefill_left(0);
}

void Generation::on_answered() {
    pool_->report_success(assignment_.lease.worker());
    advance(dispatch::LegEnded{});
}

void Generation::on_leg_failed(LegFault fault, const Error& error) {
    last_error_ = error.message();
    legs_.back().fault = last_error_;
    pool_->report_fault(assignment_.lease.worker(), fault,
                        progress_.marks().arrival + legs_.back().began);
    if (fault == LegFault::kBlocksLost) {
        log::info("request {} goes back to prefill: {}", request_.request_id, last_error_);
    } else if (fault != LegFault::kRefused && fault != LegFault::kFull) {
        log::warn("request {} lost worker {} after {} tokens: {}", request_.request_id,
                  assignment_.url, progress_.tokens(), last_error_);
    }
    const std::uint32_t retries = progress_.retries();
    const std::uint32_t resumes = progress_.resumes();
    // Counted before the search that follows, which may end the request.
    const auto self = shared_from_this();
    advance(dispatch::LegFailed{fault});
    if (progress_.retries() > retries) services_.probe.retried();
    if (progress_.resumes() > resumes)
        services_.probe.resumed(fault == LegFault::kStalled ? "stalled" : "worker_lost");
}

// ---- The end --------------------------------------------------------------------------------------

ApiError Generation::error_of(Failure failure) const {
    const bool native = pool_ == nullptr || pool_->rules().resumable;
    const auto error = [](ApiErrorCode code, std::string message) {
        return ApiError{.code = code, .message = std::move(message), .param = {}};
    };
    switch (failure) {
        case Failure::kNone:
        case Failure::kRefused: return error(ApiErrorCode::kInternal, "the request was refused");
        case Failure::kQueueFull:
            return error(ApiErrorCode::kQueueFull,
                         "too many requests wait for a worker; try again in a moment");
        case Failure::kDeadline:
            return error(
                ApiErrorCode::kDeadlineExceeded,
                fmt::format("the request's deadline of {} ms passed", request_.deadline.count()));
        case Failure::kWorkersLost:
            if (!native) return error(ApiErrorCode::kUpstreamError, last_error_);
            return error(
                ApiErrorCode::kWorkerLost,
                fmt::format("{} workers in a row were lost with this request", progress_.losses()));
        case Failure::kNoWorker:
            return error(ApiErrorCode::kWorkerLost,
                         "the worker was lost and no other came up in time");
        case Failure::kOtherModel:
            return error(ApiErrorCode::kWorkerLost,
                         "the worker was lost, and the ones left serve another model");
        case Failure::kNoOtherWorker:
        case Failure::kCutOff: return error(ApiErrorCode::kUpstreamError, last_error_);
        case Failure::kStopping: return error(ApiErrorCode::kWorkerLost, "the service is stopping");
    }
    return error(ApiErrorCode::kInternal, "the request failed");
}

void Generation::fail(Failure failure) {
    if (failure == Failure::kWorkersLost && pool_->rules().resumable)
        if (const auto hash = prompt_hash()) {
            services_.quarantine.add(*hash, steady_clock::now());
            services_.probe.quarantined();
        }
    if (failure == Failure::kRefused && refusal_) return tell_client(*refusal_);
    const bool others_words = failure == Failure::kRefused || failure == Failure::kQueueFull ||
                              failure == Failure::kNoOtherWorker;
    if (others_words && runner_) {
        if (const auto code = runner_->pass_refusal_on()) {
            told_code_ = *code;
            return;
        }
    }
    tell_client(error_of(failure));
}

void Generation::tell_client(const ApiError& error) {
    told_code_ = protocol::to_string(error.code);
    if (runner_) return runner_->fail(error);
    told_status_ = protocol::http_status(error.code);
    net::HttpHeaders headers{{"x-request-id", request_.request_id}};
    if (retry_after_) headers.set("Retry-After", std::to_string(retry_after_->count()));
    respond_error(*request_.exchange, error, headers);
}

void Generation::finish() {
    timer_.cancel();
    services_.resumes.end(turn_);
    services_.resumes.forget(*this);
    const RequestReport report = this->report();
    if (ticket_) ticket_->settle(report.prompt_tokens, report.completion_tokens);
    ticket_.reset();
    services_.probe.finished(report.pool, report.kind, length_bucket(report.prompt_tokens),
                             report.outcome);
    services_.probe.stream_closed();
    for (RequestObserver* observer : services_.observers) observer->on_done(*this, report);
    services_.on_done(*this);
}

// Of what the engine is given: a prompt that takes it down does so however it was written.
std::optional<std::uint64_t> Generation::prompt_hash() const {
    if (!prepared_ || prepared_->prompt.empty()) return std::nullopt;
    return xxh3_128(std::as_bytes(std::span(prepared_->prompt))).low;
}

bool Generation::is_quarantined() const {
    if (services_.quarantine.size() == 0) return false;
    const auto hash = prompt_hash();
    return hash && services_.quarantine.holds(*hash, steady_clock::now());
}

std::chrono::nanoseconds Generation::since_arrival(dispatch::Time at) const {
    return at - progress_.marks().arrival;
}

RequestReport Generation::report() const {
    const dispatch::Marks& marks = progress_.marks();
    const dispatch::Time until = marks.ended.value_or(steady_clock::now());
    RequestReport report{.rid = rid_,
                         .request_id = request_.request_id,
                         .trace = request_.trace,
                         .time = wall_time_,
                         .tenant = request_.tenant,
                         .conversation = request_.conversation,
                         .endpoint = request_.endpoint,
                         .stream = request_.outline.stream,
                         .role = request_.role,
                         .kind = request_.outline.kind,
                         .schema_digest = request_.outline.schema_digest,
                         .pool = pool_ == nullptr ? std::string() : pool_->name(),
                         .model = request_.outline.model,
                         .queued = since_arrival(marks.dispatched.value_or(until)),
                         .tbt = gaps_,
                         .duration = since_arrival(until),
                         .outcome = progress_.outcome(),
                         .error_code = told_code_,
                         .status = told_status_,
                         .retries = progress_.retries(),
                         .resumes = progress_.resumes(),
                         .legs = legs_};
    report.prompt_tokens = request_.body().size() / kBytesPerToken;
    if (marks.first_token) report.ttft = since_arrival(*marks.first_token);
    if (!gaps_.empty())
        report.mean_gap = (*marks.last_token - *marks.first_token) / std::int64_t(gaps_.count());
    if (!runner_) return report;
    RunnerReport ran = runner_->report();
    report.seed = ran.seed;
    report.prompt_tokens = ran.prompt_tokens;
    report.prompt_counted = ran.prompt_counted;
    report.cached_tokens = ran.cached_tokens;
    report.cached_by_source = std::move(ran.cached_by_source);
    report.kv_decision = std::move(ran.kv_decision);
    report.completion_tokens = ran.completion_tokens;
    report.reasoning_tokens = ran.reasoning_tokens;
    report.recomputed_tokens = ran.recomputed_tokens;
    if (ran.recomputed_tokens > 0) {
        const bool loss = progress_.retries() + progress_.resumes() > 0;
        report.recompute_cause = loss ? RecomputeCause::kLoss : RecomputeCause::kFallback;
    }
    report.system_fingerprint = std::move(ran.system_fingerprint);
    if (ran.status != 0) report.status = ran.status;
    report.answer = std::move(ran.answer);
    if (progress_.over() && report.outcome == Outcome::kOk && report.answer &&
        is_invalid(report.kind, *report.answer))
        report.outcome = Outcome::kInvalidOutput;
    return report;
}

}  // namespace sluice::gateway
