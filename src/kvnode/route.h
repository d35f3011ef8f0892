#pragma once

// Whom to ask for an extent, in this order: the members that own it now, and then those that may still
// have it because they owned it before.

#include <cstddef>
#include <memory>
#include <vector>

#include "kvnode/kv_member.h"

namespace sluice::kvnode {

struct Route {
    /// Shared, because a member that is dropped meanwhile still has to answer.
    std::vector<std::shared_ptr<KvMember>> members;
    std::size_t owners = 0;  ///< The first so many of them.

    /// When the answer of `members[at]` is late. While there is somebody else to ask afterwards one
    /// gets half of the time that is left, so that a member that hangs costs not all of it.
    [[nodiscard]] Deadline deadline(std::size_t at, Deadline whole) const {
        if (at + 1 >= members.size()) return whole;
        const auto now = std::chrono::steady_clock::now();
        return now + (whole - now) / 2;
    }
};
using RoutePtr = std::shared_ptr<const Route>;

/// Counts what became of a request that was not answered.
inline void count_failure(StoreStats& stats, const Error& why) {
    if (why.code() == ErrorCode::kTimeout) {
        ++stats.timeouts;
    } else if (why.code() == ErrorCode::kExhausted) {
        ++stats.refused;
    } else {
        ++stats.errors;
    }
}

}  // namespace sluice::kvnode
