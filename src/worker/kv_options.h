#pragma once

// How a worker hands blocks over and takes them in.

#include <chrono>
#include <cstddef>

#include "base/limits.h"

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
};

}  // namespace sluice::worker
