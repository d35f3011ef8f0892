#pragma once

// HTTP/1.1 server: keep-alive, bodies with Content-Length or chunks, streamed answers, and limits
// on everything a client controls. What a client does wrong is answered (400, 408, 413, 431) and
// ends that client's connection only.
//
// One HttpExchange is one request with its answer. The handler gets it with the whole body read,
// on the loop's thread, and may keep it for as long as the answer takes. Two requests on one
// connection never run at the same time.
//
// Everything here is touched from the loop's thread only, with one exception: the last reference
// to an exchange may be dropped anywhere. A dropped exchange that was not answered is answered
// with 500; if its stream was begun, the connection is cut.
//
// A client that closes or half-closes its side before the answer is complete counts as gone. One
// that has sent `limits::kPipelinedBytes` beyond its request is not read from until the answer is
// out; that it is gone is then seen only by writing.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"
#include "net/event_loop.h"
#include "net/http_message.h"
#include "net/tls.h"

namespace sluice::net {

class HttpExchange {
public:
    virtual ~HttpExchange() = default;

    [[nodiscard]] virtual const HttpRequest& request() const = 0;

    /// Answers in one piece. Fields that frame the message are the server's. Exactly one of
    /// `respond` and `begin_stream`, once; after the client is gone all of these do nothing.
    virtual void respond(HttpResponse response) = 0;

    /// Sends the head at once; the body follows in chunks by `write`. What one turn of the loop
    /// writes leaves in one piece.
    virtual void begin_stream(int status, HttpHeaders headers) = 0;
    virtual void write(std::string data) = 0;
    /// Ends the body properly; the connection lives on.
    virtual void end_stream() = 0;
    /// Cuts the connection, so that the client sees an incomplete body.
    virtual void abort() = 0;

    /// Called once, on the loop's thread, if the client is gone before the answer was handed over
    /// completely: it closed, reset, stalled longer than the limit, or let more than
    /// `stream_backlog_bytes` pile up. Not called after `end_stream` or `respond`.
    /// Registered after the fact it is called soon, never from inside this function.
    virtual void on_client_gone(std::function<void()> work) = 0;

    /// Bytes handed over and not yet taken by the kernel.
    [[nodiscard]] virtual std::size_t backlog_bytes() const = 0;
};

using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

struct HttpServerOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  ///< 0 takes a free one.
    /// A listening socket made by a parent process; replaces address and port, and is owned.
    int listen_fd = -1;
    std::size_t header_bytes = limits::kHeaderBytes;
    std::size_t body_bytes = limits::kBodyBytes;
    std::size_t connections = limits::kConnections;
    std::size_t stream_backlog_bytes = limits::kStreamBacklogBytes;
    /// With it the server speaks TLS, and nothing else.
    std::shared_ptr<const TlsIdentity> tls{};
    std::chrono::milliseconds handshake_time = std::chrono::seconds(limits::kTlsHandshakeSeconds);
    std::chrono::milliseconds header_time = std::chrono::seconds(limits::kHeaderSeconds);
    std::chrono::milliseconds body_time = std::chrono::seconds(limits::kBodySeconds);
    std::chrono::milliseconds idle_time = std::chrono::seconds(limits::kIdleSeconds);
    std::chrono::milliseconds write_stall = std::chrono::seconds(limits::kWriteStallSeconds);
    /// Body of the server's own 4xx answers; default is `{"error":{...}}` in OpenAI's shape.
    std::function<HttpResponse(int status, std::string_view message)> error_body{};
};

class HttpServer {
public:
    /// Binds and listens. `address` is numeric ("127.0.0.1", "::1", "[::1]") or "localhost".
    /// `kIo` names the address when it is taken.
    [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(EventLoop& loop,
                                                                    HttpServerOptions options,
                                                                    HttpHandler handler);
    /// Cuts every connection; exchanges that live on do nothing, and nothing is called.
    virtual ~HttpServer() = default;

    [[nodiscard]] virtual std::uint16_t port() const = 0;
    [[nodiscard]] virtual std::size_t connections() const = 0;

    /// Stops accepting and closes idle connections; running exchanges go on, and their connections
    /// end with them.
    virtual void stop_accepting() = 0;
};

}  // namespace sluice::net
