#pragma once

// Accepts TCP connections and gives each a TcpEvents of its own.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/limits.h"
#include "net/event_loop.h"
#include "net/tcp_stream.h"
#include "net/tls.h"

namespace sluice::net {

struct TcpServerOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  ///< 0 takes a free one.
    /// A listening socket made by a parent process; replaces address and port, and is owned.
    int listen_fd = -1;
    std::size_t connections = limits::kConnections;
    /// What one connection too many is told before it is closed; within TLS it is closed silently.
    /// Empty: it is not accepted before another one ends.
    std::string refusal{};
    /// With it the server speaks TLS, and nothing else.
    std::shared_ptr<const TlsIdentity> tls{};
    std::chrono::milliseconds handshake_time = std::chrono::seconds(limits::kTlsHandshakeSeconds);
    std::chrono::milliseconds write_stall = std::chrono::seconds(limits::kWriteStallSeconds);
};

class TcpServer {
public:
    /// Makes what serves one connection. `stream` lives as long as that; `peer` is the other side's
    /// address and port.
    using Factory = std::function<std::unique_ptr<TcpEvents>(TcpStream& stream, std::string peer)>;

    /// Binds and listens, as HttpServer does.
    [[nodiscard]] static Result<std::unique_ptr<TcpServer>> listen(EventLoop& loop,
                                                                   TcpServerOptions options,
                                                                   Factory factory);
    /// Cuts every connection; nothing is called.
    virtual ~TcpServer() = default;

    [[nodiscard]] virtual std::uint16_t port() const = 0;
    [[nodiscard]] virtual std::size_t connections() const = 0;
    /// Connections that were one too many.
    [[nodiscard]] virtual std::uint64_t refused() const = 0;
    virtual void stop_accepting() = 0;
};

}  // namespace sluice::net
