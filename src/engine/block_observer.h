#pragma once

// Who hears of the names that come into a pool and go: for others, elsewhere, that want to know where
// a prefix lies.

#include "kv/named_block.h"

namespace sluice::engine {

using kv::NamedBlock;

/// Called inside steps: it must not block, and should not allocate. Calls never overlap.
class BlockObserver {
public:
    virtual ~BlockObserver() = default;
    virtual void stored(const NamedBlock& block) = 0;
    virtual void removed(const kv::BlockKey& key) = 0;
};

}  // namespace sluice::engine
