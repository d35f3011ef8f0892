#include "gateway/native_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "gateway/leg_priority.h"
#include "gateway/random_id.h"
#include "record/version_manifest.h"

namespace sluice::gateway {
namespace {

using dispatch::LegFault;
using protocol::ApiError;
using protocol::ApiErrorCode;

/// A stream without new text gets a comment this often.
constexpr std::chrono::seconds kKeepAlive{15};

std::int64_t unix_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

LegFault fault_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalid:
        case ErrorCode::kOutOfRange:
        case ErrorCode::kUnsupported: return LegFault::kRefused;
        case ErrorCode::kExhausted: return LegFault::kFull;
        case ErrorCode::kTimeout: return LegFault::kStalled;
        case ErrorCode::kUnavailable: return LegFault::kUnavailable;
        case ErrorCode::kNotFound: return LegFault::kBlocksLost;
        default: return LegFault::kBroken;
    }
}

port::Phase to_port(routing::LegPhase phase) {
    switch (phase) {
        case routing::LegPhase::kPrefill: return port::Phase::kPrefill;
        case routing::LegPhase::kDecode: return port::Phase::kDecode;
        // Engines on this port see no images.
        case routing::LegPhase::kEncode:
        case routing::LegPhase::kFull: return port::Phase::kFull;
    }
    return port::Phase::kFull;
}

}  // namespace

NativeRunner::NativeRunner(const Services& services, const InboundRequest& request,
                           std::shared_ptr<const PreparedRequest> prepared, LegObserver& observer)
    : services_(services),
      request_(request),
      prepared_(std::move(prepared)),
      observer_(observer),
      seed_(prepared_->options.seed.value_or(request.seed.value_or(draw_seed()))),
      pump_(services.tokenizer, prepared_->parse),
      chain_({.shared = request.salt, .own = request.own_salt, .own_from = prepared_->own_from}) {
    report_.seed = seed_;
    report_.prompt_tokens = prepared_->prompt.size();
    report_.prompt_counted = true;
}

NativeRunner::~NativeRunner() { stop(); }

LegDemand NativeRunner::demand() {
    LegDemand demand;
    demand.chain = &chain_;
    demand.prompt = prepared_->prompt;
    demand.answer = pump_.journal();
    // The prompt of an answer that goes on must be computed again.
    demand.tokens = demand.prompt.size() + demand.answer.size();
    return demand;
}

net::HttpHeaders NativeRunner::answer_headers() const {
    return {{"x-request-id", request_.request_id},
            {"x-sluice-pool", pool_},
            {"x-sluice-seed", fmt::format("{}", seed_)}};
}

port::GenerateRequest NativeRunner::port_request(std::uint32_t max_new_tokens) const {
    port::GenerateRequest request;
    // A name of its own for each leg: the worker may still be busy forgetting the last one.
    request.rid = draw_rid();
    request.input_ids = prepared_->prompt;
    request.sampling_params = prepared_->options.sampling;
    request.sampling_params.seed = seed_;
    request.sampling_params.max_new_tokens = max_new_tokens;
    request.return_logprob = prepared_->options.logprobs;
    request.top_logprobs_num = prepared_->options.top_logprobs;
    request.resume_output_ids.assign(pump_.journal().begin(), pump_.journal().end());
    request.kv = {.tenant = request_.tenant,
                  .retention = request_.retention,
                  .salt = request_.salt,
                  .own_salt = request_.own_salt,
                  .own_from = prepared_->own_from,
                  .sources = {}};
    request.phase = to_port(phase_);
    request.dp_rank = rank_;
    if (phase_ == routing::LegPhase::kDecode && held_) {
        request.kv.sources.push_back(*held_);
    } else if (lender_) {
        const auto keys = chain_.keys().first(lender_->blocks);
        request.kv.sources.push_back(
            {.url = lender_->url, .hold = {}, .keys = {keys.begin(), keys.end()}});
    }
    // Answers are admitted before copies, whoever came first.
    request.priority = request_.role == RequestRole::kShadow ? kCopyPriority : request_.priority;
    return request;
}

void NativeRunner::open_writer(const port::ServerInfo& info) {
    if (writer_) return;
    const bool chat = request_.endpoint == Endpoint::kChat;
    report_.system_fingerprint = record::digest(record::make_manifest(info));
    writer_ = make_answer_writer(*prepared_, request_.exchange,
                                 {.id = (chat ? "chatcmpl-" : "cmpl-") + draw_rid(),
                                  .created = unix_seconds(),
                                  .model = prepared_->options.model,
                                  .system_fingerprint = report_.system_fingerprint},
                                 answer_headers());
}

std::expected<void, LegRunner::NoStart> NativeRunner::start(const Assignment& assignment) {
    const port::ServerInfo& info = *assignment.info;
    if (!pump_.journal().empty() && !port::compute_alike(info, *computed_by_))
        return std::unexpected(NoStart::kOtherModel);
    const auto max_tokens = resolve_max_tokens(*prepared_, info.context_length);
    if (!max_tokens) {
        refusal_ = max_tokens.error();
        return std::unexpected(NoStart::kRefused);
    }
    computed_by_ = assignment.info;
    phase_ = assignment.leg;
    rank_ = assignment.rank;
    lender_ = assignment.lender;
    leg_seen_ = 0;
    url_ = assignment.url;
    pool_ = assignment.pool->name();
    open_writer(info);
    leg_ = adapters::NativeLeg::start(
        services_.client, url_, port_request(*max_tokens),
        {.on_frame = [this](const port::GenerateFrame& frame) { on_frame(frame); },
         .on_end = [] {},
         .on_handover = [this](const port::GenerateFrame& frame) { on_handover(frame); },
         .on_error = [this](const Error& error,
                            adapters::Reached reached) { on_error(error, reached); }},
        {.stall_time = services_.stall_time, .traceparent = to_traceparent(request_.trace)});
    return {};
}

// Closing its connection makes the worker free the request before its next step.
void NativeRunner::stop() {
    leg_.reset();
    known_tokens_ = std::max(known_tokens_, leg_tokens_);
    leg_tokens_ = 0;
}

void NativeRunner::release() {
    if (held_) services_.holds.release(*held_);
    held_.reset();
}

void NativeRunner::collect() { collected_ = std::make_shared<CollectedAnswer>(); }

std::optional<std::string> NativeRunner::pass_refusal_on() {
    if (!refusal_) return std::nullopt;
    fail(*refusal_);
    return std::string(protocol::to_string(refusal_->code));
}

void NativeRunner::fail(const ApiError& error) {
    if (!begun_) report_.status = protocol::http_status(error.code);
    if (writer_) {
        writer_->fail(error);
    } else {
        respond_error(*request_.exchange, error, answer_headers());
    }
}

bool NativeRunner::gave_up(const port::GenerateFrame& frame) {
    const auto& end = frame.finish_reason;
    if (!end || (end->type != port::FinishType::kAbort && end->type != port::FinishType::kError))
        return false;
    const bool abort = end->type == port::FinishType::kAbort;
    if (!abort) log::error("request {} failed on {}: {}", request_.request_id, url_, end->message);
    observer_.on_leg_failed(abort ? LegFault::kUnavailable : LegFault::kBroken,
                            {ErrorCode::kUnavailable, end->message});
    return true;
}

void NativeRunner::on_frame(const port::GenerateFrame& frame) { static_cast<void>(take(frame)); }

void NativeRunner::on_handover(const port::GenerateFrame& frame) {
    if (phase_ != routing::LegPhase::kPrefill) {
        return observer_.on_leg_failed(
            LegFault::kBroken, {ErrorCode::kCorrupt, "a hand-over came that nobody asked for"});
    }
    held_ = frame.kv->source;
    if (take(frame)) return observer_.on_handed_over();
    // What the client sees ends with prefill's token: nobody will decode.
    release();
}

bool NativeRunner::shows_progress(const port::GenerateFrame& frame) {
    const std::uint64_t seen = frame.cached_tokens + frame.computed_tokens;
    // While it fetches what another holds, a decode worker computes nothing.
    return std::exchange(leg_seen_, seen) < seen || phase_ == routing::LegPhase::kDecode;
}

bool NativeRunner::take(const port::GenerateFrame& frame) {
    if (gave_up(frame)) return false;
    writer_->begin();
    if (!std::exchange(begun_, true)) {
        report_.status = 200;
        observer_.on_answer_begun();
    }
    const std::size_t before = pump_.journal().size();
    count(frame, before);
    const std::vector<Piece> pieces = pump_.take(frame);
    if (collected_) keep(frame, pieces);
    write(pieces);
    const std::size_t came = pump_.journal().size() - before;
    if (came > 0) {
        // Whoever decodes has told the one before that it has what it needs.
        if (phase_ == routing::LegPhase::kDecode) held_.reset();
        observer_.on_tokens(static_cast<std::uint32_t>(came));
    } else if (shows_progress(frame)) {
        observer_.on_progress(leg_seen_);
    }
    if (!pump_.finished()) return true;
    writer_->finish(*pump_.finished(), pump_.usage());
    if (collected_) collected_->finish_reason = protocol::to_string(*pump_.finished());
    observer_.on_answered();
    return false;
}

void NativeRunner::count(const port::GenerateFrame& frame, std::size_t before) {
    if (before == 0 && !frame.output_ids.empty()) {
        report_.cached_by_source = frame.cached_tokens_by_source;
        report_.kv_decision = frame.kv_decision;
    }
    // What an earlier leg knew and this one does not find in a cache, it computes again.
    if (leg_tokens_ == 0 && known_tokens_ > frame.cached_tokens)
        report_.recomputed_tokens += known_tokens_ - frame.cached_tokens;
    // A token that was just drawn is not computed yet.
    leg_tokens_ = frame.output_ids.empty()
                      ? std::max<std::uint64_t>(1, frame.cached_tokens + frame.computed_tokens)
                      : prepared_->prompt.size() + before + frame.output_ids.size() - 1;
}

void NativeRunner::write(const std::vector<Piece>& pieces) {
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
}

void NativeRunner::keep(const port::GenerateFrame& frame, const std::vector<Piece>& pieces) {
    CollectedAnswer& answer = *collected_;
    for (const Piece& piece : pieces) {
        const bool thinking = piece.event.kind == protocol::OutputKind::kReasoning;
        std::string& text = thinking ? answer.reasoning : answer.text;
        const std::size_t kept = answer.text.size() + answer.reasoning.size();
        const std::size_t room = limits::kCollectedAnswerBytes - kept;
        answer.cut = answer.cut || piece.event.text.size() > room;
        text += piece.event.text.substr(0, room);
    }
    for (std::size_t i = 0; i < frame.output_ids.size(); ++i) {
        if (answer.output_ids.size() >= limits::kCollectedAnswerBytes / sizeof(TokenId)) break;
        answer.output_ids.push_back(frame.output_ids[i]);
        if (i < frame.output_logprobs.size())
            answer.logprobs.push_back(frame.output_logprobs[i].chosen.logprob);
    }
}

void NativeRunner::on_error(const Error& error, adapters::Reached reached) {
    LegFault fault = fault_of(error.code());
    if (fault == LegFault::kUnavailable && reached == adapters::Reached::kNobody)
        fault = LegFault::kNotTaken;
    if (fault == LegFault::kRefused) {
        refusal_ = protocol::to_api_error(error);
    } else if (fault == LegFault::kFull) {
        refusal_ =
            ApiError{.code = ApiErrorCode::kQueueFull, .message = error.message(), .param = {}};
    }
    observer_.on_leg_failed(fault, error);
}

RunnerReport NativeRunner::report() const {
    RunnerReport report = report_;
    const protocol::Usage& usage = pump_.usage();
    report.cached_tokens = usage.cached_tokens;
    report.completion_tokens = usage.completion_tokens;
    report.reasoning_tokens = usage.reasoning_tokens;
    report.answer = collected_;
    return report;
}

}  // namespace sluice::gateway
