#include "worker/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "net/sse.h"
#include "port/port_error.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

using std::chrono::steady_clock;

/// How soon a reader that has fallen behind is looked at again.
constexpr std::chrono::milliseconds kRetry{20};

}  // namespace

Generation::Generation(Host host, std::shared_ptr<net::HttpExchange> exchange,
                       const port::GenerateRequest& request)
    : host_(std::move(host)),
      exchange_(std::move(exchange)),
      rid_(request.rid),
      stream_(request.stream),
      is_decode_(request.phase == port::Phase::kDecode),
      deadline_ms_(request.deadline_ms),
      mailbox_(std::make_shared<Mailbox>(stream_ ? Delivery::kEveryStep : Delivery::kAtEnd)) {
    last_.rid = rid_;
    last_.prompt_tokens = request.input_ids.size();
    last_.completion_tokens = request.resume_output_ids.size();
}

Result<void> Generation::start(port::GenerateRequest request) {
    if (looks_elsewhere(request)) {
        engine::Request wanted = to_engine(request);
        if (auto checked = host_.engine.check(wanted); !checked) return checked;
        if (auto room = host_.engine.check_room(); !room) return room;
        after_fetch_ = std::move(wanted);
        begin();
        fetch(request);
        return {};
    }
    if (auto submitted = submit(to_engine(std::move(request))); !submitted) return submitted;
    begin();
    return {};
}

/// Whether it may be sooner to have blocks brought from somewhere than to begin at once.
bool Generation::looks_elsewhere(const port::GenerateRequest& request) const {
    if (request.phase == port::Phase::kDecode || !request.kv.sources.empty()) return true;
    const std::size_t tokens = request.input_ids.size() + request.resume_output_ids.size();
    return !host_.kv.cache.tiers().empty() && tokens > engine::Engine::kBlockTokens;
}

Result<void> Generation::submit(engine::Request request) {
    const auto sink = [mailbox = mailbox_, loop = &host_.loop,
                       weak = weak_from_this()](const engine::Output& output) {
        if (!mailbox->put(output)) return;
        loop->post([weak] {
            if (const auto self = weak.lock()) self->on_output();
        });
    };
    return host_.engine.submit(std::move(request), sink);
}

void Generation::fetch(const port::GenerateRequest& request) {
    fetch_ = KvFetch::start({.loop = host_.loop,
                             .client = host_.kv.client,
                             .engine = host_.engine,
                             .options = host_.kv.options,
                             .releases = host_.kv.releases,
                             .tiers = host_.kv.cache.tiers()},
                            request, [weak = weak_from_this()](const KvFetch::Fetched& fetched) {
                                if (const auto self = weak.lock()) self->on_fetched(fetched);
                            });
}

void Generation::on_fetched(const KvFetch::Fetched& fetched) {
    const auto self = shared_from_this();  // What ends it lets go of it.
    fetch_.reset();
    host_.metrics.on_fetched(fetched);
    engine::Request request = *std::exchange(after_fetch_, std::nullopt);
    const std::size_t tokens = request.input_ids.size() + request.resume_output_ids.size() - 1;
    if (const std::size_t missing = fetched.missing_tokens;
        is_decode_ && missing > host_.kv.options.recompute_max) {
        return end_with(
            {.type = port::FinishType::kError,
             .matched = {},
             .message = fmt::format("{} of {} tokens would have to be computed, but at most {} are",
                                    missing, tokens, host_.kv.options.recompute_max),
             .code = std::string(port::kKvUnavailable)});
    }
    fetched_tokens_ = fetched.tokens_by_source;
    std::vector<TokenId> known = request.input_ids;
    known.insert(known.end(), request.resume_output_ids.begin(), request.resume_output_ids.end());
    publication_.emplace(host_.publisher,
                         KvPublisher::Origin{.engine = &host_.engine, .producer = host_.producer},
                         fetched, std::move(known));
    request.imported_tokens = fetched.imported_tokens;
    if (const auto submitted = submit(std::move(request)); !submitted) {
        const Refusal refusal = to_refusal(submitted.error());
        end_with({.type = port::FinishType::kError,
                  .matched = {},
                  .message = refusal.error.message,
                  .code = refusal.error.code});
    }
}

void Generation::end_with(port::FinishReason reason) {
    const auto self = shared_from_this();
    port::GenerateFrame frame = last_;
    frame.finish_reason = std::move(reason);
    if (exchange_) stream_ ? write(frame) : answer(frame);
    host_.on_end(rid_);
}

void Generation::begin() {
    const auto weak = weak_from_this();
    exchange_->on_client_gone([weak] {
        if (const auto self = weak.lock()) self->on_client_gone();
    });
    if (deadline_ms_ > 0) {
        deadline_ = host_.loop.call_after(std::chrono::milliseconds(deadline_ms_),
                                          [this] { abort("deadline"); });
    }
    if (!stream_) return;
    exchange_->begin_stream(200,
                            {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}});
    written_ = steady_clock::now();
    heartbeat_ = host_.loop.call_after(host_.heartbeat, [this] { beat(); });
}

void Generation::abort(std::string reason) {
    if (abort_reason_.empty()) abort_reason_ = std::move(reason);
    if (const auto fetch = std::exchange(fetch_, nullptr)) {
        fetch->cancel();
        return end_with(
            {.type = port::FinishType::kAbort, .matched = {}, .message = abort_reason_});
    }
    host_.engine.abort(rid_);
}

void Generation::on_client_gone() {
    exchange_ = nullptr;
    heartbeat_.cancel();
    deadline_.cancel();
    abort("the client is gone");
}

void Generation::on_output() {
    if (stream_ && exchange_ && exchange_->backlog_bytes() > limits::kPortFrameBacklogBytes) {
        retry_ = host_.loop.call_after(kRetry, [this] { on_output(); });
        return;
    }
    auto output = mailbox_->take();
    if (!output) return;
    const auto self = shared_from_this();  // `on_end` lets go of it.
    note_admission(*output);
    publish(*output);
    const bool ended = output->finish.has_value();
    if (exchange_) {
        const port::GenerateFrame frame = frame_of(std::move(*output));
        stream_ ? write(frame) : answer(frame);
    }
    if (ended) host_.on_end(rid_);
}

void Generation::note_admission(const engine::Output& output) {
    if (admitted_ || output.computed_tokens == 0) return;
    admitted_ = true;
    std::uint64_t fetched = 0;
    for (const auto& [source, tokens] : fetched_tokens_) fetched += tokens;
    fetched = std::min(fetched, output.cached_tokens);
    host_.metrics.on_admitted(output.prompt_tokens - fetched, output.cached_tokens - fetched);
}

// Until its first token a request computes its prompt from the front; what it finds on the way counts
// as cached.
void Generation::publish(const engine::Output& output) {
    if (!publication_) return;
    publication_->on_tokens(output.tokens);
    if (output.completion_tokens == 0)
        publication_->on_computed(output.cached_tokens + output.computed_tokens);
    if (output.finish && *output.finish != engine::Finish::kFailed &&
        *output.finish != engine::Finish::kAborted)
        publication_->on_end();
}

port::GenerateFrame Generation::frame_of(engine::Output output) {
    std::shared_ptr<const engine::HeldSequence> held = std::move(output.held);
    port::GenerateFrame frame = to_frame(rid_, std::move(output), abort_reason_, fetched_tokens_);
    if (!held) return frame;
    frame.kv.emplace();
    frame.kv->source.keys = held->keys;
    frame.kv->source.tail_tokens = static_cast<std::uint32_t>(held->tail_tokens);
    frame.kv->hold_until_ms = static_cast<std::uint64_t>(host_.kv.options.hold_time.count());
    frame.kv->source.hold = host_.kv.holds.add({.sequence = std::move(held), .rank = host_.rank});
    return frame;
}

void Generation::write(const port::GenerateFrame& frame) {
    written_ = steady_clock::now();
    std::string event = net::sse_event(port::to_json(frame));
    if (frame.finish_reason || frame.kv) {
        event += net::sse_event("[DONE]");
        exchange_->write(std::move(event));
        exchange_->end_stream();
        heartbeat_.cancel();
        deadline_.cancel();
        return;
    }
    last_.prompt_tokens = frame.prompt_tokens;
    last_.cached_tokens = frame.cached_tokens;
    last_.cached_tokens_by_source = frame.cached_tokens_by_source;
    last_.completion_tokens = frame.completion_tokens;
    last_.computed_tokens = frame.computed_tokens;
    last_.drafted = frame.drafted;
    last_.accepted = frame.accepted;
    exchange_->write(std::move(event));
}

void Generation::answer(const port::GenerateFrame& frame) {
    deadline_.cancel();
    exchange_->respond(net::HttpResponse::json(200, port::to_json(frame)));
}

// One timer for the life of the stream: each frame only notes its time.
void Generation::beat() {
    const auto now = steady_clock::now();
    const auto due = written_ + host_.heartbeat;
    if (now < due) {
        heartbeat_ = host_.loop.call_after(due - now, [this] { beat(); });
        return;
    }
    written_ = now;
    heartbeat_ = host_.loop.call_after(host_.heartbeat, [this] { beat(); });
    // A heart that beats while the engine is stuck would tell a lie; a fetch has deadlines of its own.
    const std::uint64_t steps = host_.engine.stats().steps;
    if (std::exchange(steps_, steps) == steps && !fetch_) return;
    if (exchange_->backlog_bytes() == 0) exchange_->write(net::sse_event(port::to_json(last_)));
}

}  // namespace sluice::worker
