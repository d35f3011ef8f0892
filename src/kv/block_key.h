#pragma once

// Names of KV blocks. A key names everything that the bytes of a block depend on: the model, the
// arithmetic, the layout, the tenant's salt, and every token from the start of the sequence to the
// end of the block. Equal keys mean equal bytes; that is why a cache hit can't change an answer.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/sampling_params.h"

namespace sluice::kv {

using BlockKey = Sha256Digest;

/// What all blocks of one component share, tokens aside.
struct BlockKeyRoot {
    std::string fingerprint;  ///< Of the weights and hyper-parameters.
    std::string numerics_id;
    std::string component;  ///< "mla"
    std::uint32_t shard = 0;
    std::string layout;
    std::string dtype;
    std::uint32_t block_tokens = 64;
    std::string salt;
};

/// The parent of a sequence's first block. Fields are hashed with their lengths, so that no two
/// different roots run together.
[[nodiscard]] BlockKey root_key(const BlockKeyRoot& root);

/// The key of the block that holds `tokens` right after the block named `parent`.
[[nodiscard]] BlockKey child_key(const BlockKey& parent, std::span<const TokenId> tokens);

/// The keys of the full blocks of `tokens`, in order; `root` is the parent of the first.
[[nodiscard]] std::vector<BlockKey> chain_keys(const BlockKey& root,
                                               std::span<const TokenId> tokens,
                                               std::size_t block_tokens);

}  // namespace sluice::kv
