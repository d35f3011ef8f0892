#pragma once

// How a worker hands blocks over, takes them in, and keeps them.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/fault_points.h"
#include "base/limits.h"
#include "kv/load_choice.h"
#include "kv/retention.h"

namespace sluice::worker {

struct KvOptions {
    /// A prefill's blocks are let go of if nobody has released them by then.
    std::chrono::milliseconds hold_time = std::chrono::seconds(limits::kKvHoldSeconds);
    // Towards each source of blocks:
    std::chrono::milliseconds connect_time{1'000};
    std::chrono::milliseconds stall_time{2'000};  ///< Longest silence.
    std::chrono::milliseconds pull_time{20'000};  ///< All of it.
    /// A decode that would have to compute more tokens of what it was to get is refused.
    std::size_t recompute_max = 8'192;

    /// Takes blocks of other builds of this engine that compute alike, as far as their names tell;
    /// else those of its own build alone.
    bool compatible_builds = false;

    // The tiers outside of the pool:
    std::size_t dram_bytes = 0;    ///< Of this worker's memory; 0: none.
    std::size_t tenant_bytes = 0;  ///< Of each tenant there; 0: no bound but that.
    kv::RetentionTimes retention{};
    std::vector<std::string> stores{};  ///< As kvnode/store_url.h has them.
    std::string ca_file{};  ///< PEM, of whom rediss:// nodes are believed by; empty: the system's.
    std::size_t replicas = 1;  ///< Cache nodes that get a block.
    FaultPoints faults{};
    std::optional<kv::ForcedChoice> forced{};
    std::chrono::milliseconds find_time{100};    ///< Longest look-up.
    std::chrono::milliseconds load_time{5'000};  ///< Longest load.
};

}  // namespace sluice::worker
