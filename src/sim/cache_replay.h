#pragma once

// Recorded prompts on a shared cache alone, without engines or time: what a policy, a size and a number
// of nodes find of them.

#include <cstdint>
#include <span>

#include "sim/shared_cache.h"
#include "sim/workload.h"

namespace sluice::sim {

struct CacheResults {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t blocks = 0;
    /// In the part of prompts from their start to the first block that wasn't there.
    std::uint64_t usable_tokens = 0;
    std::uint64_t usable_blocks = 0;
    /// In all blocks that were there: where an engine computes a hole and loads what is behind it.
    std::uint64_t present_tokens = 0;
    std::uint64_t evictions = 0;
    double imbalance = 1.0;  ///< At the end: the fullest node's blocks over the mean.

    [[nodiscard]] double usable_share() const;
    [[nodiscard]] double usable_block_share() const;
    [[nodiscard]] double present_share() const;
};

/// `work` in order of arrival. Each prompt is looked for, and stored as a whole at once.
[[nodiscard]] CacheResults replay_cache(std::span<const SimWork> work,
                                        const SharedCacheOptions& options);

}  // namespace sluice::sim
