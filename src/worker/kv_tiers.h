#pragma once

// The places outside of the engines' pools where this worker finds blocks and leaves them: its own
// memory, cache nodes, shared directories; the nearest first. What is known of their speed is here, too.
// Everything on the loop's thread.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kv/load_choice.h"
#include "kv/tier_speed.h"
#include "kvnode/block_store.h"

namespace sluice::worker {

struct KvTier {
    std::string name;  ///< "dram", "node", "directory": as frames and metrics call it.
    std::unique_ptr<kvnode::BlockStore> store;
    kv::TierSpeed speed;
    bool is_memory = false;  ///< Of this process: nothing is nearer.
    /// A chain's extents lie apart there: each loses its place by its own last use.
    bool is_spread = false;
    bool in_use = true;
};

struct KvTiers {
    std::vector<std::unique_ptr<KvTier>> all;
    kv::TierSpeed peers;  ///< Other workers that have blocks, all taken together.
    std::optional<kv::ForcedChoice> forced;
    std::chrono::milliseconds find_time{100};  ///< Longest that a look-up may take.
    std::chrono::milliseconds load_time{5'000};

    [[nodiscard]] bool empty() const {
        return std::ranges::none_of(all, [](const auto& tier) { return tier->in_use; });
    }
};

}  // namespace sluice::worker
