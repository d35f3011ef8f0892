#pragma once

// Durations, sizes and addresses as people write them: "1h30m", "4GiB", "127.0.0.1:8080". One
// reading of them for configuration files and command lines.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

/// Whole numbers with a unit each (d h m s ms), largest first: "10m", "1h30m", "250ms", "0s".
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);
[[nodiscard]] std::string format_duration(std::chrono::milliseconds duration);

/// A whole number of bytes with a unit: B, KiB MiB GiB TiB (1024), KB MB GB TB (1000).
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);
/// In the largest binary unit that divides it.
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

struct HostPort {
    std::string host;
    std::uint16_t port = 0;
    bool operator==(const HostPort&) const = default;
};

/// "host:port" or "[v6]:port". Port 0 is allowed: it takes a free one.
[[nodiscard]] Result<HostPort> parse_host_port(std::string_view text);
[[nodiscard]] std::string to_string(const HostPort& address);
/// Whether only this machine can reach a socket that listens on `host`.
[[nodiscard]] bool is_loopback(std::string_view host);

}  // namespace sluice
