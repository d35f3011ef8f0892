#pragma once

// Who hears of the names that come into a pool and go: for others, elsewhere, that want to know where
// a prefix lies.

#include "kv/block_key.h"

namespace sluice::engine {

/// The name of a block, and of what it follows.
struct NamedBlock {
    kv::BlockKey key{};
    kv::BlockKey parent{};  ///< The root if it is a sequence's first.
    bool first = false;
    bool operator==(const NamedBlock&) const = default;
};

/// Called inside steps: it must not block, and should not allocate. Calls never overlap.
class BlockObserver {
public:
    virtual ~BlockObserver() = default;
    virtual void stored(const NamedBlock& block) = 0;
    virtual void removed(const kv::BlockKey& key) = 0;
};

}  // namespace sluice::engine
