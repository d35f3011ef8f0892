#include "gateway/generation.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "base/hash.h"
#include "base/log.h"

namespace sluice::gateway {
namespace {

using protocol::ApiError;
using protocol::ApiErrorCode;

constexpr std::uint32_t kLossesMax = 2;
/// How long a stream that lost its worker waits for another.
constexpr std::chrono::seconds kResumePatience{30};
/// A stream without new text gets a comment this often.
constexpr std::chrono::seconds kKeepAlive{15};

std::uint64_t random_u64() {
    thread_local std::mt19937_64 generator{[] {
        std::random_device device;
        return (std::uint64_t{device()} << 32) | device();
    }()};
    return generator();
}

// Every seed drawn here survives a trip through a JSON number.
std::uint64_t draw_seed() { return random_u64() >> 11; }

std::string draw_rid() { return fmt::format("{:016x}{:016x}", random_u64(), random_u64()); }

std::int64_t unix_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// What a client may compare between answers: equal digests mean equal versions all the way down.
std::string version_digest(const port::ServerInfo& info) {
    const std::string manifest = fmt::format("{}\n{}\n{}\n{}\n{}", info.engine, info.fingerprint,
                                             info.numerics_id, info.version, info.commit);
    return "fp_" + to_hex(sha256(manifest)).substr(0, 16);
}

}  // namespace

Generation::Generation(GenerationServices& services, std::shared_ptr<net::HttpExchange> exchange,
                       RequestHeaders headers)
    : services_(services),
      exchange_(std::move(exchange)),
      headers_(std::move(headers)),
      arrival_(std::chrono::steady_clock::now()),
      id_(draw_rid()) {
    if (headers_.request_id.empty()) headers_.request_id = id_;
}

void Generation::start() {
    services_.probe.stream_opened();
    const std::weak_ptr<Generation> weak = weak_from_this();
    exchange_->on_client_gone([weak] {
        const auto self = weak.lock();
        if (self && !self->done_) self->finish(Outcome::kClientGone);
    });
    deadline_ = services_.loop.call_after(headers_.deadline, [weak] {
        if (const auto self = weak.lock()) self->on_deadline();
    });
}

net::HttpHeaders Generation::answer_headers() const {
    net::HttpHeaders headers{{"x-request-id", headers_.request_id},
                             {"x-sluice-pool", services_.pool}};
    if (pump_) headers.add("x-sluice-seed", fmt::format("{}", seed_));
    return headers;
}

void Generation::on_prepared(std::expected<PreparedRequest, ApiError> prepared) {
    if (done_) return;
    if (!prepared) return fail(prepared.error(), Outcome::kRejected);
    request_ = std::move(*prepared);
    seed_ = request_.options.seed.value_or(draw_seed());
    class_ = {.kind = request_.options.seed ? "seeded" : "text",
              .bucket = length_bucket(request_.prompt.size())};
    // What no worker of this model could take does not wait for one.
    const auto fits = resolve_max_tokens(request_, services_.preparer.profile().context_tokens);
    if (!fits) return fail(fits.error(), Outcome::kRejected);
    pump_ = std::make_unique<TokenPump>(services_.preparer.tokenizer(), request_.parse);
    seek_worker();
}

void Generation::seek_worker() {
    if (done_) return;
    auto assignment = services_.workers.pick({.requests = 1,
                                              .prefill_tokens = request_.prompt.size(),
                                              .kv_tokens = request_.prompt.size()});
    if (assignment) return start_leg(std::move(*assignment));
    if (!services_.wait_for_worker(shared_from_this())) {
        fail({.code = ApiErrorCode::kQueueFull,
              .message = "too many requests wait for a worker; try again in a moment",
              .param = {}},
             Outcome::kRejected);
    }
}

bool Generation::same_arithmetic(const port::ServerInfo& info) const {
    return arithmetic_.empty() || arithmetic_ == info.fingerprint + info.numerics_id;
}

port::GenerateRequest Generation::port_request(std::uint32_t max_new_tokens) const {
    port::GenerateRequest request;
    // A name of its own for each leg: the worker may still be busy forgetting the last one.
    request.rid = draw_rid();
    request.input_ids = request_.prompt;
    request.sampling_params = request_.options.sampling;
    request.sampling_params.seed = seed_;
    request.sampling_params.max_new_tokens = max_new_tokens;
    request.return_logprob = request_.options.logprobs;
    request.top_logprobs_num = request_.options.top_logprobs;
    request.resume_output_ids.assign(pump_->journal().begin(), pump_->journal().end());
    return request;
}

void Generation::start_leg(Assignment assignment) {
    const port::ServerInfo& info = assignment.info;
    if (!pump_->journal().empty() && !same_arithmetic(info)) {
        return fail({.code = ApiErrorCode::kWorkerLost,
                     .message = "the worker was lost, and the ones left serve another model",
                     .param = {}},
                    Outcome::kWorkerLost);
    }
    const auto max_tokens = resolve_max_tokens(request_, info.context_length);
    if (!max_tokens) return fail(max_tokens.error(), Outcome::kRejected);
    if (!writer_) {
        const bool chat = request_.endpoint == Endpoint::kChat;
        writer_ = make_answer_writer(request_, exchange_,
                                     {.id = (chat ? "chatcmpl-" : "cmpl-") + id_,
                                      .created = unix_seconds(),
                                      .model = request_.options.model,
                                      .system_fingerprint = version_digest(info)},
                                     answer_headers());
    }
    resume_deadline_.cancel();
    if (phase_ == Phase::kQueue) phase_ = Phase::kPrefill;
    arithmetic_ = info.fingerprint + info.numerics_id;
    assignment_ = std::move(assignment);
    services_.probe.leases(services_.workers.leases());
    const std::weak_ptr<Generation> weak = weak_from_this();
    leg_ = adapters::NativeLeg::start(services_.client, assignment_.url, port_request(*max_tokens),
                                      {.on_frame =
                                           [weak](const port::GenerateFrame& frame) {
                                               const auto self = weak.lock();
                                               if (self && !self->done_) self->on_frame(frame);
                                           },
                                       .on_end = [] {},
                                       .on_error =
                                           [weak](const Error& error, bool) {
                                               const auto self = weak.lock();
                                               if (self && !self->done_) self->on_leg_error(error);
                                           }});
}

void Generation::on_frame(const port::GenerateFrame& frame) {
    const auto& end = frame.finish_reason;
    if (end && end->type == port::FinishType::kAbort) {
        return fail({.code = ApiErrorCode::kWorkerLost,
                     .message = "the worker gave the request up: " + end->message,
                     .param = {}},
                    Outcome::kWorkerLost);
    }
    if (end && end->type == port::FinishType::kError) {
        log::error("request {} failed on {}: {}", headers_.request_id, assignment_.url,
                   end->message);
        return fail({.code = ApiErrorCode::kInternal, .message = end->message, .param = {}},
                    Outcome::kError);
    }
    writer_->begin();
    measure(frame);
    const std::vector<Piece> pieces = pump_->take(frame);
    const auto now = std::chrono::steady_clock::now();
    if (!pieces.empty()) {
        writer_->write(pieces);
        last_write_ = now;
    } else if (last_write_ == std::chrono::steady_clock::time_point{}) {
        last_write_ = now;
    } else if (now - last_write_ >= kKeepAlive) {
        writer_->keep_alive();
        last_write_ = now;
    }
    if (!pump_->finished()) return;
    writer_->finish(*pump_->finished(), pump_->usage());
    finish(Outcome::kOk);
}

void Generation::measure(const port::GenerateFrame& frame) {
    if (frame.output_ids.empty()) return;
    const auto now = std::chrono::steady_clock::now();
    losses_ = 0;
    if (phase_ != Phase::kDecode) {
        services_.probe.first_token(now - arrival_);
        phase_ = Phase::kDecode;
        // The prompt is computed; what counts against the worker now is what it keeps.
        routing::Load load = assignment_.lease.load();
        load.prefill_tokens = 0;
        assignment_.lease.update(load);
    } else {
        services_.probe.tokens(now - last_token_, frame.output_ids.size());
    }
    last_token_ = now;
}

void Generation::on_leg_error(const Error& error) {
    const WorkerIndex worker = assignment_.worker;
    const std::string url = assignment_.url;
    end_leg();
    if (error.code() == ErrorCode::kInvalid || error.code() == ErrorCode::kOutOfRange ||
        error.code() == ErrorCode::kUnsupported) {
        return fail(protocol::to_api_error(error), Outcome::kRejected);
    }
    if (error.code() == ErrorCode::kExhausted) {
        return fail({.code = ApiErrorCode::kQueueFull, .message = error.message(), .param = {}},
                    Outcome::kRejected);
    }
    services_.workers.report_failure(worker);
    const bool resume = !pump_->journal().empty();
    log::warn("request {} lost worker {} after {} tokens: {}", headers_.request_id, url,
              pump_->journal().size(), error.message());
    if (++losses_ >= kLossesMax) {
        return fail(
            {.code = ApiErrorCode::kWorkerLost,
             .message = fmt::format("{} workers in a row were lost with this request", losses_),
             .param = {}},
            Outcome::kWorkerLost);
    }
    if (resume) {
        services_.probe.resumed(error.code() == ErrorCode::kTimeout ? "stalled" : "worker_lost");
    } else {
        services_.probe.retried();
    }
    const std::weak_ptr<Generation> weak = weak_from_this();
    resume_deadline_ = services_.loop.call_after(kResumePatience, [weak] {
        const auto self = weak.lock();
        if (!self || self->done_) return;
        self->fail({.code = ApiErrorCode::kWorkerLost,
                    .message = "the worker was lost and no other came up in time",
                    .param = {}},
                   Outcome::kWorkerLost);
    });
    seek_worker();
}

void Generation::on_deadline() {
    if (done_) return;
    const Outcome outcome = phase_ == Phase::kQueue     ? Outcome::kTimeoutQueue
                            : phase_ == Phase::kPrefill ? Outcome::kTimeoutPrefill
                                                        : Outcome::kTimeoutDecode;
    fail({.code = ApiErrorCode::kDeadlineExceeded,
          .message =
              fmt::format("the request's deadline of {} ms passed", headers_.deadline.count()),
          .param = {}},
         outcome);
}

void Generation::abandon() {
    if (done_) return;
    fail({.code = ApiErrorCode::kWorkerLost, .message = "the service is stopping", .param = {}},
         Outcome::kError);
}

void Generation::fail(const ApiError& error, Outcome outcome) {
    if (writer_) {
        writer_->fail(error);
    } else {
        respond_error(*exchange_, error, answer_headers());
    }
    finish(outcome);
}

// A leg may be ended from inside one of its own events, so it is destroyed a moment later. That
// closes its connection, and the worker frees the request before its next step.
void Generation::end_leg() {
    assignment_ = {};
    services_.probe.leases(services_.workers.leases());
    if (leg_) services_.loop.post([leg = std::shared_ptr<adapters::NativeLeg>(std::move(leg_))] {});
}

void Generation::finish(Outcome outcome) {
    if (std::exchange(done_, true)) return;
    const auto self = shared_from_this();
    end_leg();
    deadline_.cancel();
    resume_deadline_.cancel();
    services_.probe.finished(class_, outcome);
    services_.probe.stream_closed();
    services_.on_done(*this);
}

}  // namespace sluice::gateway
