#pragma once

// Makes TCP connections.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/limits.h"
#include "net/event_loop.h"
#include "net/tcp_stream.h"
#include "net/tls.h"

namespace sluice::net {

struct TcpTarget {
    std::string host;  ///< A name or a numeric address, without brackets.
    std::uint16_t port = 0;
    /// With it the connection is TLS, and the host must be who it says.
    std::shared_ptr<const TlsTrust> trust{};
    std::chrono::milliseconds connect_time{2'000};  ///< The TLS handshake included.
    std::chrono::milliseconds write_stall = std::chrono::seconds(limits::kWriteStallSeconds);
};

/// Loop thread. Events come later, never from inside this; `events` outlives the stream. Any of them
/// may destroy the stream.
[[nodiscard]] std::unique_ptr<TcpStream> connect_tcp(EventLoop& loop, TcpTarget target,
                                                     TcpEvents& events);

}  // namespace sluice::net
