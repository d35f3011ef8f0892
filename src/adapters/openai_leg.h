#pragma once

// One leg of a request on an OpenAI-compatible engine: posts the body, hands on the head of the answer
// as soon as it is there, and its bytes: of a stream in whole events, of anything else in one piece.
// What is in them is not its business.
//
// A leg ends with exactly one of `on_end` and `on_error`, unless it is destroyed before; destroying
// it closes the connection, which makes the engine give the request up. Nothing is retried here.
//
// Threads: the loop's.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/sse_cutter.h"

namespace sluice::adapters {

/// Each of them may destroy the leg.
struct OpenAiLegEvents {
    /// Status 200 with an event stream: events follow.
    std::function<void(const net::HttpHeaders& headers)> on_stream;
    /// A whole event. Its `raw` is the stream's own bytes.
    std::function<void(const net::SseCutter::Piece& piece)> on_event;
    /// All events that came together have been reported: the moment to write.
    std::function<void()> on_pause;
    /// The answer, if it is no stream, whatever its status.
    std::function<void(int status, const net::HttpHeaders& headers, std::string body)> on_answer;
    /// The stream is over, in good order as far as HTTP goes. `tail` is what stands behind its last
    /// event; empty if an event began there and never ended.
    std::function<void(std::string_view tail)> on_end;
    /// kUnavailable: refused, reset or cut off. kTimeout: silent for too long. kCorrupt: not HTTP.
    /// kExhausted: an event or a body beyond its limit.
    std::function<void(const Error& error)> on_error;
};

struct OpenAiLegOptions {
    std::chrono::milliseconds connect_time{2'000};
    /// Until the first event, or the whole of an answer that is no stream.
    std::chrono::milliseconds first_time{120'000};
    /// Longest silence after it.
    std::chrono::milliseconds stall_time{60'000};
};

class OpenAiLeg {
public:
    /// `url` is the endpoint's. Events come later, never from inside `start`.
    [[nodiscard]] static std::unique_ptr<OpenAiLeg> start(net::EventLoop& loop,
                                                          net::HttpClient& client, std::string url,
                                                          net::HttpHeaders headers,
                                                          std::vector<net::SharedText> body,
                                                          OpenAiLegEvents events,
                                                          const OpenAiLegOptions& options = {});
    ~OpenAiLeg();
    OpenAiLeg(const OpenAiLeg&) = delete;
    OpenAiLeg& operator=(const OpenAiLeg&) = delete;

private:
    struct State;
    explicit OpenAiLeg(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace sluice::adapters
