#pragma once

// What a tier holds and what became of it, for metrics and `ctl kv status`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::kv {

/// Why a value left.
enum class Removal : std::uint8_t {
    kEvicted,      ///< Room was needed.
    kTenantBound,  ///< Its tenant needed room below its own bound.
    kExpired,
    kErased,    ///< Somebody asked for it.
    kReplaced,  ///< By another value of its name; never a block.
    kCorrupt,   ///< Who read it found it wrong.
};
inline constexpr std::size_t kRemovals = 6;
/// "evicted", "tenant_bound", "expired", "erased", "replaced", "corrupt"
[[nodiscard]] std::string_view to_string(Removal removal);

struct TierUse {
    std::uint64_t entries = 0;
    std::size_t bytes = 0;
};

struct DramStats {
    std::size_t limit = 0;
    std::size_t bytes = 0;  ///< All that is taken: values, names, places, tables.
    std::uint64_t entries = 0;
    std::uint64_t mortal = 0;  ///< Entries whose life has an end.
    std::uint64_t pinned = 0;  ///< Entries, and
    std::size_t pinned_bytes = 0;
    TierUse agent;  ///< Blocks by class;
    TierUse chat;
    TierUse other;  ///< what is no block.
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t stored = 0;
    std::uint64_t was_there = 0;
    std::uint64_t differs = 0;  ///< Numerics violations.
    std::uint64_t refused = 0;
    std::uint64_t corrupt = 0;  ///< Refused, because it wasn't the block that its name says.
    std::array<std::uint64_t, kRemovals> removed{};
    struct Tenant {
        std::string name;
        std::uint64_t entries = 0;
        std::size_t bytes = 0;
        std::uint64_t over_bound = 0;  ///< Entries that went for the tenant's own bound.
    };
    std::vector<Tenant> tenants;  ///< By name.
};

}  // namespace sluice::kv
