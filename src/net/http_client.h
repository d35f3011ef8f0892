#pragma once

// HTTP/1.1 client with connection reuse, for workers and upstream engines. Answers are streamed to
// the caller as they come; a call ends with exactly one of `on_done` and `on_error`, unless it is
// cancelled, after which nothing is called. A call is never retried here, but for `repeatable`.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "net/event_loop.h"
#include "net/http_message.h"
#include "net/shared_text.h"

namespace sluice::net {

struct ClientRequest {
    std::string method = "GET";
    std::string url{};  ///< "http://127.0.0.1:8080/v1/models", or https
    HttpHeaders headers{};
    std::string body{};
    /// Follows `body`, piece by piece; each is let go of once the kernel has it.
    std::vector<SharedText> shared_body{};
    std::chrono::milliseconds connect_time{2'000};  ///< The TLS handshake included.
    std::chrono::milliseconds head_time{30'000};    ///< Until the answer's head is there.
    std::chrono::milliseconds stall_time{60'000};   ///< Longest silence within the body.
    /// It does no harm twice, as GET and HEAD don't. Then it is sent once more where a connection that
    /// had been waiting turns out to be closed before a byte of an answer.
    bool repeatable = false;
};

struct ClientEvents {
    std::function<void(int status, const HttpHeaders& headers)> on_head{};
    std::function<void(std::string_view data)> on_data{};
    std::function<void()> on_done{};
    /// `kUnavailable` (refused, reset, cut), `kTimeout`, `kInvalid` (not HTTP, bad URL).
    std::function<void(const Error& error)> on_error{};
};

/// Handle of a running call. Destroying it cancels the call: its connection is closed.
class HttpCall {
public:
    virtual ~HttpCall() = default;

    /// For who has read all that matters and need not wait for the end of the framing: nothing is
    /// called any more, but the connection can be used again if that end comes soon. The handle is
    /// of no more use.
    virtual void finish_unheard() = 0;
};

class HttpClient {
public:
    struct Options {
        std::size_t idle_connections_per_host = 64;
        std::chrono::milliseconds idle_time{30'000};
        /// PEM file of the authorities that https servers are believed by; empty: the system's.
        /// Read when the first https URL is called.
        std::string ca_file{};
    };

    explicit HttpClient(EventLoop& loop);
    HttpClient(EventLoop& loop, Options options);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    /// Loop thread. Events come later, never from inside `start`. The last event may destroy the
    /// handle it belongs to.
    [[nodiscard]] std::unique_ptr<HttpCall> start(ClientRequest request, ClientEvents events);

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::net
