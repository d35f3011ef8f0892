#pragma once

// `sluice gateway`: one gateway as a process, from its options to the last drained request.

#include <functional>
#include <string>

#include "base/error.h"
#include "gateway/gateway.h"

namespace sluice::gateway {

struct GatewayProcessOptions {
    GatewayOptions gateway;
    /// The model whose tokenizer and dialect the pool uses: a path, or the built-in "krill".
    std::string model = "krill";
    std::chrono::milliseconds grace = std::chrono::seconds(30);
};

struct GatewayAddresses {
    std::string url;  ///< "http://127.0.0.1:8080"
    std::string admin;
};

/// Told as things happen, on the event loop's thread.
struct GatewayEvents {
    std::function<void(const GatewayAddresses&)> on_listening;
    std::function<void(const GatewayAddresses&)> on_ready;  ///< Once, when a worker can answer.
};

/// Runs until SIGTERM or SIGINT, then drains; returns the signal. A second signal doesn't wait.
[[nodiscard]] Result<int> run_gateway(GatewayProcessOptions options, const GatewayEvents& events);

}  // namespace sluice::gateway
