#pragma once

// What a tier in memory knows of one name, and what that takes in memory.

#include <cstddef>
#include <cstdint>
#include <string>

#include "kv/block_name.h"
#include "kv/name_table.h"
#include "kv/retention.h"
#include "kv/shared_bytes.h"
#include "kv/worth_order.h"

namespace sluice::kv {

/// The entries of one tenant, which are held to a bound of their own.
struct TierTenant {
    std::string name;
    std::size_t bytes = 0;
    std::uint64_t entries = 0;
    std::uint64_t over_bound = 0;  ///< Entries that went for the bound.
    std::uint64_t nodes = 0;       ///< Entries, and places of blocks that are not here.
    WorthOrder order;
};

/// A place among all entries, and one among the tenant's.
struct TierNode : WorthOrder::Node {};
struct TenantNode : WorthOrder::Node {};

/// A value, or the place of a block that is not here and that others follow.
struct TierEntry : NamedEntry, TierNode, TenantNode {
    SharedBytes value;
    std::size_t cost = 0;  ///< Bytes of all that it takes.
    WallTime expires = kForever;
    WallTime pinned_until{};
    TierTenant* tenant = nullptr;  ///< Null: this is no block.
    TierEntry* parent = nullptr;   ///< Of a block.
    BlockKey key{};                ///< Of a block.
    std::uint32_t children = 0;
    Retention retention = Retention::kNone;  ///< Of a block.

    [[nodiscard]] bool is_block() const { return tenant != nullptr; }
    [[nodiscard]] bool here() const { return value.owner != nullptr; }
    [[nodiscard]] bool pinned() const { return pinned_until != WallTime{}; }
};

/// What malloc takes for `bytes`, at most.
[[nodiscard]] constexpr std::size_t allocated(std::size_t bytes) {
    constexpr std::size_t kPage = 4'096;
    if (bytes >= 32 * kPage) return (bytes / kPage + 2) * kPage;
    return (bytes + 16 + 15) / 16 * 16;
}

/// Of a value's owner: its control block.
inline constexpr std::size_t kOwnerBytes = 64;

[[nodiscard]] constexpr std::size_t entry_cost(std::size_t name_bytes, std::size_t value_bytes) {
    constexpr std::size_t kInPlace = 15;  ///< So long a text needs no memory of its own.
    const std::size_t name = name_bytes > kInPlace ? allocated(name_bytes + 1) : 0;
    return allocated(sizeof(TierEntry)) + 2 * WorthOrder::kBytesEach + name +
           allocated(value_bytes) + kOwnerBytes;
}

}  // namespace sluice::kv
