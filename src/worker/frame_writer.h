#pragma once

// A request's answer on its way to whoever asked: frames of a stream, or one of them at the end. A stream
// that has nothing to say for a while repeats its counters, so that its reader knows that it goes on.
//
// Everything on the loop's thread.

#include <chrono>
#include <functional>
#include <memory>

#include "net/event_loop.h"
#include "net/http_server.h"
#include "port/generate.h"

namespace sluice::worker {

class FrameWriter {
public:
    struct Options {
        bool stream = false;
        std::chrono::milliseconds heartbeat{};  ///< Longest silence of a stream.
    };

    /// `last`: the counters to repeat before there was a frame.
    FrameWriter(net::EventLoop& loop, std::shared_ptr<net::HttpExchange> exchange,
                port::GenerateFrame last, const Options& options);

    /// `goes_on` is asked before each repetition; `on_gone` is called if the client leaves.
    void begin(std::function<bool()> goes_on, std::function<void()> on_gone);
    /// The client is gone: nothing is written any more.
    void let_go();
    [[nodiscard]] bool is_open() const { return exchange_ != nullptr; }
    /// The reader has fallen behind: better a larger frame, later.
    [[nodiscard]] bool is_behind() const;

    /// One with a finish reason, or with blocks that it hands over, is the last. No effect if the client
    /// is gone.
    void write(const port::GenerateFrame& frame);
    /// The last one, of what was said before.
    void end(port::FinishReason reason);

private:
    void write_to_stream(const port::GenerateFrame& frame);
    void beat();

    net::EventLoop& loop_;
    std::shared_ptr<net::HttpExchange> exchange_;  ///< Null once the client is gone.
    port::GenerateFrame last_;                     ///< Counters of the last frame.
    const Options options_;
    std::function<bool()> goes_on_;
    std::chrono::steady_clock::time_point written_;
    net::Timer heartbeat_;
};

}  // namespace sluice::worker
