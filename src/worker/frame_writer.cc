#include "worker/frame_writer.h"

#include <string>
#include <utility>

#include "base/limits.h"
#include "net/sse.h"

namespace sluice::worker {

using std::chrono::steady_clock;

FrameWriter::FrameWriter(net::EventLoop& loop, std::shared_ptr<net::HttpExchange> exchange,
                         port::GenerateFrame last, const Options& options)
    : loop_(loop), exchange_(std::move(exchange)), last_(std::move(last)), options_(options) {}

void FrameWriter::begin(std::function<bool()> goes_on, std::function<void()> on_gone) {
    goes_on_ = std::move(goes_on);
    exchange_->on_client_gone(std::move(on_gone));
    if (!options_.stream) return;
    exchange_->begin_stream(200,
                            {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}});
    written_ = steady_clock::now();
    heartbeat_ = loop_.call_after(options_.heartbeat, [this] { beat(); });
}

void FrameWriter::let_go() {
    exchange_ = nullptr;
    heartbeat_.cancel();
}

bool FrameWriter::is_behind() const {
    return options_.stream && exchange_ != nullptr &&
           exchange_->backlog_bytes() > limits::kPortFrameBacklogBytes;
}

void FrameWriter::write(const port::GenerateFrame& frame) {
    if (exchange_ == nullptr) return;
    if (options_.stream) return write_to_stream(frame);
    exchange_->respond(net::HttpResponse::json(200, port::to_json(frame)));
}

void FrameWriter::write_to_stream(const port::GenerateFrame& frame) {
    written_ = steady_clock::now();
    std::string event = net::sse_event(port::to_json(frame));
    if (frame.finish_reason || frame.kv) {
        event += net::sse_event("[DONE]");
        exchange_->write(std::move(event));
        exchange_->end_stream();
        heartbeat_.cancel();
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

void FrameWriter::end(port::FinishReason reason) {
    port::GenerateFrame frame = last_;
    frame.finish_reason = std::move(reason);
    write(frame);
}

// One timer for the life of the stream: each frame only notes its time.
void FrameWriter::beat() {
    const auto now = steady_clock::now();
    const auto due = written_ + options_.heartbeat;
    if (now < due) {
        heartbeat_ = loop_.call_after(due - now, [this] { beat(); });
        return;
    }
    written_ = now;
    heartbeat_ = loop_.call_after(options_.heartbeat, [this] { beat(); });
    if (!goes_on_()) return;
    if (exchange_->backlog_bytes() == 0) exchange_->write(net::sse_event(port::to_json(last_)));
}

}  // namespace sluice::worker
