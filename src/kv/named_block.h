#pragma once

// A block as others hear of it: by its name, and after which one it comes.

#include "kv/block_key.h"

namespace sluice::kv {

struct NamedBlock {
    BlockKey key{};
    BlockKey parent{};  ///< The root if it is a sequence's first.
    bool first = false;
    bool operator==(const NamedBlock&) const = default;
};

}  // namespace sluice::kv
