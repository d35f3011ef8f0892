#pragma once

// What an engine says at GET /ready: whether it answers, and how busy it is. The status is 200 if it
// is ready and 503 otherwise; the body is the same.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::port {

enum class EngineState : std::uint8_t {
    kLoading,
    kReady,
    kStopping,
    kStalled,  ///< It has requests, and makes no step.
};

/// "loading", "ready", "stopping" or "stalled".
[[nodiscard]] std::string_view to_string(EngineState state);

/// Of one data-parallel rank, which has a pool and a queue of its own.
struct RankLoad {
    std::uint32_t running = 0;
    std::uint32_t waiting = 0;
    float kv_used_share = 0.0F;
    std::uint64_t computed_tokens = 0;
    bool operator==(const RankLoad&) const = default;
};

/// Of all ranks together.
struct LoadReport {
    EngineState state = EngineState::kLoading;
    std::uint32_t running = 0;          ///< Requests that take part in steps.
    std::uint32_t waiting = 0;          ///< Requests that don't yet.
    float kv_used_share = 0.0F;         ///< Of the pool, held by running requests: 0 to 1.
    std::uint64_t computed_tokens = 0;  ///< Since the start; growth is what progress means.
    std::vector<RankLoad> ranks{};      ///< By rank; empty where there is only one.
    /// The process, so that a restart is seen however quick it was; 0 if it does not say.
    std::uint32_t pid = 0;
    /// Of the list of cache nodes that it follows (port/kv_orders.h); 0: the one it was started with.
    std::uint64_t kv_epoch = 0;
    /// Nanoseconds that each token of a prefix of 1,024 takes to come from a cache node, and from
    /// another worker, by what loads took; 0: there is no such tier, or it does not say.
    std::uint32_t kv_node_token_ns = 0;
    std::uint32_t kv_peer_token_ns = 0;
    bool operator==(const LoadReport&) const = default;
};

[[nodiscard]] std::string to_json(const LoadReport& report);
[[nodiscard]] Result<LoadReport> parse_load_report(std::string_view json);

}  // namespace sluice::port
