#pragma once

// Whose a block in the pool is: what an operator says when some are to be forgotten. It keeps nobody
// apart (the salts in their names do that), and a block's first owner is its only one: equal names have
// equal salts, so all who compute it are of one tenant.

#include <cstdint>
#include <string_view>

#include "base/retention.h"

namespace sluice::engine {

struct BlockOwner {
    std::uint64_t tenant = 0;  ///< A hash, so that a block's record has one size: `tenant_hash`.
    Retention retention =
        Retention::kNone;  ///< Of the request that computed it, or had it fetched.
    bool operator==(const BlockOwner&) const = default;
};

[[nodiscard]] std::uint64_t tenant_hash(std::string_view tenant);

}  // namespace sluice::engine
