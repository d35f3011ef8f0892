#pragma once

// Which ports a service gets, and whether they can be had at all: a taken port is told before a
// model is loaded, not after.

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/service_config.h"

namespace sluice::app {

/// Error `kUnavailable` if `address` is in use, or can't be used on this machine. Port 0 is free.
[[nodiscard]] Result<void> check_port_free(const HostPort& address);

/// Settles `gateway` with what `--port` says, and checks both addresses. Unless the admin address is
/// configured it follows the main one: the next port, or a free one if that is taken; 0 follows 0.
[[nodiscard]] Result<GatewayConfig> choose_ports(GatewayConfig gateway,
                                                 std::optional<std::uint16_t> port);

}  // namespace sluice::app
