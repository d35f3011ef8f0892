#include "gateway/upstream_runner.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/limits.h"
#include "gateway/answer_writer.h"
#include "gateway/cache_rules.h"
#include "gateway/upstream_headers.h"
#include "net/sse.h"
#include "protocol/json_writer.h"
#include "protocol/response.h"
#include "protocol/upstream_body.h"

namespace sluice::gateway {
namespace {

using dispatch::LegFault;
using protocol::ChunkDetail;
using protocol::UpstreamChunk;

/// Before the upstream has counted: four bytes of JSON a token.
constexpr std::uint64_t kBytesPerToken = 4;

/// How long a connection whose stream is complete may take to say so. Then it is closed.
constexpr std::chrono::seconds kConnectionEnd{1};

bool lies_in(std::string_view part, std::string_view whole) {
    const std::less_equal<const char*> before;
    return before(whole.data(), part.data()) &&
           before(part.data() + part.size(), whole.data() + whole.size());
}

LegFault fault_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kTimeout: return LegFault::kStalled;
        case ErrorCode::kUnavailable: return LegFault::kUnavailable;
        default: return LegFault::kBroken;
    }
}

LegFault fault_of(int status) {
    switch (status) {
        case 401:  // The key that it refuses is ours, and the model is one that it should have.
        case 403:
        case 404: return LegFault::kMisconfigured;
        case 429:
        case 503: return LegFault::kFull;
        default: return status >= 400 && status < 500 ? LegFault::kRefused : LegFault::kBroken;
    }
}

}  // namespace

UpstreamRunner::UpstreamRunner(net::EventLoop& loop, net::HttpClient& client,
                               const UpstreamPoolOptions& options, const InboundRequest& request,
                               LegObserver& observer)
    : loop_(loop),
      client_(client),
      options_(options),
      request_(request),
      observer_(observer),
      adds_usage_(options.usage == UsagePolicy::kAlways && request.outline.stream &&
                  !request.outline.include_usage) {
    report_.prompt_tokens = request.body().size() / kBytesPerToken;
    const std::string& asked = request.outline.model;
    if (!options.upstream_model.empty() && !asked.empty() && asked != options.upstream_model)
        protocol::append_json_string(client_model_, asked);
}

LegDemand UpstreamRunner::demand() {
    LegDemand demand;
    demand.tokens = report_.prompt_tokens;
    return demand;
}

/// The client's own bytes, where they are: its exchange keeps them.
std::vector<net::SharedText> UpstreamRunner::body_for_upstream() const {
    const std::string& own =
        options_.upstream_model.empty() ? options_.model : options_.upstream_model;
    std::vector<net::SharedText> pieces;
    const protocol::UpstreamBodyEdits edits{
        .model = own,
        .include_usage = adds_usage_,
        .cache_salt = options_.isolation == CacheIsolation::kSalt ? narrowest_salt(request_) : ""};
    for (protocol::UpstreamBodyPart& part :
         protocol::upstream_body(request_.body(), request_.outline, edits)) {
        pieces.push_back(part.put_in.empty()
                             ? net::SharedText{.text = part.kept, .owner = request_.exchange}
                             : net::SharedText::own(std::move(part.put_in)));
    }
    return pieces;
}

std::expected<void, LegRunner::NoStart> UpstreamRunner::start(const Assignment& assignment) {
    const bool chat = request_.endpoint == Endpoint::kChat;
    refusal_.reset();
    net::HttpHeaders headers = request_headers_for(request_.exchange->request().headers,
                                                   options_.api_key, request_.request_id);
    headers.set("traceparent", to_traceparent(request_.trace));
    leg_ = adapters::OpenAiLeg::start(
        loop_, client_, assignment.url + (chat ? "/chat/completions" : "/completions"),
        std::move(headers), body_for_upstream(),
        {.on_stream = [this](const net::HttpHeaders& headers) { on_stream(headers); },
         .on_event = [this](const net::SseCutter::Piece& piece) { on_event(piece); },
         .on_pause = [this] { on_pause(); },
         .on_answer =
             [this](int status, const net::HttpHeaders& headers, std::string body) {
                 on_answer({.status = status, .headers = headers, .body = std::move(body)});
             },
         .on_end = [this](std::string_view tail) { on_end(tail); },
         .on_error =
             [this](const Error& error) {
                 // All that was missing is the end of the connection.
                 if (done_seen_) return complete();
                 observer_.on_leg_failed(fault_of(error.code()), error);
             }},
        options_.times);
    return {};
}

void UpstreamRunner::collect() { collected_ = std::make_shared<CollectedAnswer>(); }

void UpstreamRunner::stop() {
    connection_end_.cancel();
    leg_.reset();
}

// ---- A stream -------------------------------------------------------------------------------------

void UpstreamRunner::on_stream(const net::HttpHeaders& headers) {
    begun_ = true;
    report_.status = 200;
    request_.exchange->begin_stream(
        200, answer_headers_from(headers, options_.name, request_.request_id));
    observer_.on_answer_begun();
}

void UpstreamRunner::on_event(const net::SseCutter::Piece& piece) {
    if (error_seen_ || stream_end_seen_) return;
    if (!piece.has_data) {
        pending_ += piece.raw;
        return;
    }
    if (piece.data == protocol::kStreamEnd) {
        done_seen_ = true;
        // A CR may be half of a line's end; then the end of the connection says that it was all.
        stream_end_seen_ = !piece.raw.ends_with('\r');
        pending_ += piece.raw;
        return;
    }
    const UpstreamChunk chunk = protocol::read_upstream_chunk(
        piece.data, collected_ ? ChunkDetail::kContent : ChunkDetail::kFacts);
    if (take(chunk)) pass_on(piece, chunk);
}

/// As it came, but for the model's name where clients know another one. (An event whose data stands on
/// several lines, which no engine sends, keeps its own.)
void UpstreamRunner::pass_on(const net::SseCutter::Piece& piece, const UpstreamChunk& chunk) {
    const protocol::BodySpan& name = chunk.model_value;
    if (client_model_.empty() || name.empty() || !lies_in(piece.data, piece.raw)) {
        pending_ += piece.raw;
        return;
    }
    const auto data = static_cast<std::size_t>(piece.data.data() - piece.raw.data());
    pending_.append(piece.raw.substr(0, data + name.begin)).append(client_model_);
    pending_.append(piece.raw.substr(data + name.begin + name.size));
}

/// False if the event is not the client's: the usage that only we asked for.
bool UpstreamRunner::take(const UpstreamChunk& chunk) {
    if (chunk.has_error) {
        error_seen_ = true;
        error_message_ = chunk.error_message;
        return true;
    }
    if (chunk.has_output) ++pending_tokens_;
    if (!chunk.finish_reason.empty()) done_seen_ = true;
    if (report_.system_fingerprint.empty()) report_.system_fingerprint = chunk.system_fingerprint;
    if (collected_) keep(chunk);
    if (!chunk.usage) return true;
    report_.prompt_tokens = chunk.usage->prompt_tokens;
    report_.prompt_counted = true;
    report_.completion_tokens = chunk.usage->completion_tokens;
    report_.cached_tokens = chunk.usage->cached_tokens;
    report_.reasoning_tokens = chunk.usage->reasoning_tokens;
    return chunk.has_choices || !adds_usage_;
}

void UpstreamRunner::on_pause() {
    if (!pending_.empty()) request_.exchange->write(std::exchange(pending_, {}));
    // An upstream that does not count is counted by its events.
    if (!report_.prompt_counted) report_.completion_tokens += pending_tokens_;
    if (const auto tokens = std::exchange(pending_tokens_, 0)) observer_.on_tokens(tokens);
    if (error_seen_)
        return observer_.on_leg_failed(LegFault::kBroken, {ErrorCode::kInternal, error_message_});
    if (stream_end_seen_) end_for_client();
}

/// The client has all there is. The connection may serve again, if its end comes soon.
void UpstreamRunner::end_for_client() {
    if (std::exchange(ended_, true)) return;
    request_.exchange->end_stream();
    connection_end_ = loop_.call_after(kConnectionEnd, [this] {
        leg_.reset();
        complete();
    });
}

void UpstreamRunner::on_end(std::string_view tail) {
    // An event that never ended is not passed on: nobody could read it.
    if (!tail.empty() && !ended_) request_.exchange->write(std::string(tail));
    if (done_seen_) return complete();
    observer_.on_leg_failed(
        LegFault::kUnavailable,
        {ErrorCode::kUnavailable, "the upstream's stream ended before its answer did"});
}

void UpstreamRunner::complete() {
    connection_end_.cancel();
    if (!std::exchange(ended_, true)) request_.exchange->end_stream();
    observer_.on_answered();
}

void UpstreamRunner::keep(const UpstreamChunk& chunk) {
    CollectedAnswer& answer = *collected_;
    const auto append = [&](std::string& to, std::string_view text) {
        const std::size_t kept = answer.text.size() + answer.reasoning.size();
        const std::size_t room =
            limits::kCollectedAnswerBytes - std::min(kept, limits::kCollectedAnswerBytes);
        answer.cut = answer.cut || text.size() > room;
        to += text.substr(0, room);
    };
    append(answer.text, chunk.text);
    append(answer.reasoning, chunk.reasoning);
    for (const protocol::UpstreamToolCall& call : chunk.tool_calls) {
        if (call.index >= limits::kCollectedToolCalls) {
            answer.cut = true;
            continue;
        }
        if (call.index >= answer.tool_calls.size()) answer.tool_calls.resize(call.index + 1);
        CollectedToolCall& kept = answer.tool_calls[call.index];
        if (!call.id.empty()) kept.id = call.id;
        kept.name += call.name;
        const std::size_t room = limits::kCollectedAnswerBytes -
                                 std::min(kept.arguments.size(), limits::kCollectedAnswerBytes);
        answer.cut = answer.cut || call.arguments.size() > room;
        kept.arguments += call.arguments.substr(0, room);
    }
    if (!chunk.finish_reason.empty()) answer.finish_reason = chunk.finish_reason;
}

// ---- One body -------------------------------------------------------------------------------------

void UpstreamRunner::on_answer(Answer answer) {
    const bool good = answer.status >= 200 && answer.status < 300;
    const UpstreamChunk chunk = protocol::read_upstream_chunk(
        answer.body, collected_ && good ? ChunkDetail::kContent : ChunkDetail::kFacts);
    if (!good || chunk.has_error || !chunk.is_object)
        return on_failed_answer(std::move(answer), chunk);
    static_cast<void>(take(chunk));
    const protocol::BodySpan& name = chunk.model_value;
    if (!client_model_.empty() && !name.empty())
        answer.body.replace(name.begin, name.size, client_model_);
    // The whole answer is there at once: its first token came with its last.
    const std::uint64_t tokens = std::max<std::uint64_t>(report_.completion_tokens, 1);
    respond(std::move(answer));
    observer_.on_answer_begun();
    observer_.on_tokens(static_cast<std::uint32_t>(tokens));
    observer_.on_answered();
}

void UpstreamRunner::on_failed_answer(Answer answer, const UpstreamChunk& chunk) {
    const bool lies = answer.status >= 200 && answer.status < 300;
    const LegFault fault = lies ? LegFault::kBroken : fault_of(answer.status);
    std::string message = "the upstream answered with status " + std::to_string(answer.status);
    if (lies && !chunk.has_error) message += " and a body that is no JSON object";
    if (!chunk.error_message.empty()) message += ": " + chunk.error_message;
    // What it says of our key is not for the client.
    const bool ours = answer.status == 401 || answer.status == 403;
    if (!lies && !ours && answer.status < 500) refusal_ = std::move(answer);
    observer_.on_leg_failed(fault, {ErrorCode::kUnavailable, message});
}

void UpstreamRunner::respond(Answer answer) {
    report_.status = answer.status;
    request_.exchange->respond(
        {.status = answer.status,
         .headers = answer_headers_from(answer.headers, options_.name, request_.request_id),
         .body = std::move(answer.body)});
}

std::optional<std::string> UpstreamRunner::pass_refusal_on() {
    if (!refusal_ || begun_) return std::nullopt;
    const int status = refusal_->status;
    respond(*std::exchange(refusal_, std::nullopt));
    return "upstream_status_" + std::to_string(status);
}

void UpstreamRunner::fail(const protocol::ApiError& error) {
    if (!begun_) {
        report_.status = protocol::http_status(error.code);
        return respond_error(
            *request_.exchange, error,
            {{"x-request-id", request_.request_id}, {"x-sluice-pool", options_.name}});
    }
    if (std::exchange(ended_, true)) return;
    // The client has the upstream's own words already, if there were any.
    if (!error_seen_) request_.exchange->write(net::sse_event(protocol::to_json(error)));
    request_.exchange->end_stream();
}

RunnerReport UpstreamRunner::report() const {
    RunnerReport report = report_;
    report.answer = collected_;
    return report;
}

}  // namespace sluice::gateway
