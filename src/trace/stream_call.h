#pragma once

// One streamed request (chat or completion) against any OpenAI-compatible address, timed as its client sees
// it: time to first token, the gaps between tokens, what the usage says, how it ended.
//
// Threads: the loop's.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_client.h"
#include "trace/load_plan.h"

namespace sluice::trace {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Whom to ask, and what all requests have in common.
struct LoadTarget {
    std::string url;    ///< "http://127.0.0.1:8080/v1", without a slash at the end.
    std::string model;  ///< As the other side calls it.
    std::string api_key{};
    bool ignore_eos = false;  ///< Answers run to their full length; not every server takes it.
    std::chrono::milliseconds head_time{600'000};
    std::chrono::milliseconds stall_time{120'000};
};

enum class CallOutcome : std::uint8_t {
    kOk,
    kRejected,       ///< 4xx, 429 among them.
    kTimeout,        ///< No answer, or silence within it.
    kInvalidOutput,  ///< JSON was asked for, and what came is none.
    kError,          ///< All else: 5xx, cut off, an error within the stream.
};

[[nodiscard]] std::string_view to_string(CallOutcome outcome);

struct CallResult {
    CallOutcome outcome = CallOutcome::kError;
    int status = 0;                                 ///< 0 if there was no answer.
    std::optional<std::chrono::microseconds> ttft;  ///< From the time the request was due.
    /// Between events that brought something to read.
    std::vector<std::chrono::microseconds> gaps;
    std::chrono::microseconds duration{};
    std::uint32_t prompt_tokens = 0;  ///< As the usage says; 0 if it doesn't.
    std::uint32_t cached_tokens = 0;
    std::uint32_t completion_tokens = 0;
    std::string finish_reason;  ///< Empty if none came.
    std::string text;           ///< What was generated; only if it was to be kept.
    std::string error;          ///< Empty if all went well.
};

/// What a call needs to know of its request beside the body.
struct CallOptions {
    std::string path = "/chat/completions";  ///< Below the target's address; or "/completions".
    bool expects_json = false;               ///< The text must be JSON, or the output is invalid.
    bool keep_text = false;
    net::HttpHeaders headers{};  ///< Beside content type and key.
    /// Called for each event that brings something to read; must not destroy the call.
    std::function<void()> on_token{};
};

/// The body of a chat request: `request.kind` adds a seed, a schema or a tool.
[[nodiscard]] std::string request_body(const LoadTarget& target, const PlannedRequest& request,
                                       std::string_view prompt);

class StreamCall {
public:
    /// `due` is when the request should have been sent: time lost before it counts, so that a stalled
    /// server is not measured only by the requests it let through. `on_end` is called once, never
    /// from inside `start`, and may destroy the call; a destroyed call is closed without it.
    [[nodiscard]] static std::unique_ptr<StreamCall> start(net::HttpClient& client,
                                                           const LoadTarget& target,
                                                           std::string body, CallOptions options,
                                                           SteadyTime due,
                                                           std::function<void(CallResult)> on_end);
    ~StreamCall();
    StreamCall(const StreamCall&) = delete;
    StreamCall& operator=(const StreamCall&) = delete;

private:
    struct State;
    explicit StreamCall(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace sluice::trace
