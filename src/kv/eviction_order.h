#pragma once

// Which entry goes first when room is needed.
//
// Of a chain of blocks only the last can go without making those behind it useless, so an entry that
// others follow is held, as is one that is pinned. An order walks past held entries without paying for
// them twice: what it finds held it sets aside, until the last hold ends; then that entry is the next
// to go, unless it was used meanwhile. So a block outlives all that follow it, in whatever order the
// blocks of a request were asked for.

#include <cstdint>

namespace sluice::kv {

/// An entry's place in one order. The entry owns it and takes it out before it ends.
struct EvictionNode {
    EvictionNode* colder = nullptr;
    EvictionNode* warmer = nullptr;
    std::uint32_t holds = 0;
    bool queued = false;  ///< Not set aside.
};

/// Least recently used first.
class EvictionOrder {
public:
    EvictionOrder() { ends_.colder = ends_.warmer = &ends_; }
    EvictionOrder(const EvictionOrder&) = delete;
    EvictionOrder& operator=(const EvictionOrder&) = delete;

    /// A new entry, or a use of one that is here.
    void touch(EvictionNode& node);
    /// It is no longer here.
    void remove(EvictionNode& node);
    void hold(EvictionNode& node) { ++node.holds; }
    /// Gives one hold back.
    void unhold(EvictionNode& node);
    /// The next to go, which stays until it is removed; null if all are held.
    [[nodiscard]] EvictionNode* coldest();

private:
    static void unlink(EvictionNode& node);
    static void link_before(EvictionNode& node, EvictionNode& place);

    /// `warmer` is the coldest node, `colder` the warmest.
    EvictionNode ends_;
};

}  // namespace sluice::kv
