#pragma once

// Who hears of the names that come into a pool and go: for others, elsewhere, that want to know where
// a prefix lies.

#include <optional>

#include "kv/block_key.h"

namespace sluice::engine {

/// A full block with a name, and the name before it; nothing for a sequence's first.
struct NamedBlock {
    kv::BlockKey key{};
    std::optional<kv::BlockKey> parent;
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
