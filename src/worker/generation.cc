#include "worker/generation.h"

#include <utility>

#include "base/limits.h"
#include "net/sse.h"
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
      deadline_ms_(request.deadline_ms),
      mailbox_(std::make_shared<Mailbox>(stream_ ? Delivery::kEveryStep : Delivery::kAtEnd)) {
    last_.rid = rid_;
    last_.prompt_tokens = request.input_ids.size();
    last_.completion_tokens = request.resume_output_ids.size();
}

Result<void> Generation::start(port::GenerateRequest request) {
    const auto sink = [mailbox = mailbox_, loop = &host_.loop,
                       weak = weak_from_this()](const engine::Output& output) {
        if (!mailbox->put(output)) return;
        loop->post([weak] {
            if (const auto self = weak.lock()) self->on_output();
        });
    };
    if (auto submitted = host_.engine.submit(to_engine(std::move(request)), sink); !submitted) {
        return submitted;
    }
    begin();
    return {};
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
    const bool ended = output->finish.has_value();
    if (exchange_) stream_ ? write(std::move(*output)) : answer(std::move(*output));
    if (ended) host_.on_end(rid_);
}

void Generation::note_admission(const engine::Output& output) {
    if (admitted_ || output.computed_tokens == 0) return;
    admitted_ = true;
    host_.metrics.on_admitted(output.prompt_tokens, output.cached_tokens);
}

void Generation::write(engine::Output output) {
    const port::GenerateFrame frame = to_frame(rid_, std::move(output), abort_reason_);
    written_ = steady_clock::now();
    std::string event = net::sse_event(port::to_json(frame));
    if (frame.finish_reason) {
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

void Generation::answer(engine::Output output) {
    deadline_.cancel();
    exchange_->respond(net::HttpResponse::json(
        200, port::to_json(to_frame(rid_, std::move(output), abort_reason_))));
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
    // A heart that beats while the engine is stuck would tell a lie.
    const std::uint64_t steps = host_.engine.stats().steps;
    if (std::exchange(steps_, steps) == steps) return;
    if (exchange_->backlog_bytes() == 0) exchange_->write(net::sse_event(port::to_json(last_)));
}

}  // namespace sluice::worker
