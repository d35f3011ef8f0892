#pragma once

// The names of one sequence's blocks. What a tenant's requests have in common - tools and system text -
// is named by the tenant's salt alone; what belongs to one user or session has that one's salt mixed
// in as well, from the first block on that reaches into it.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kv/block_key.h"

namespace sluice::kv {

/// Blocks are found only by requests with the same salts at the same places.
struct Salt {
    std::string shared{};      ///< Of all blocks: the tenant's.
    std::string own{};         ///< If not empty, of those that reach beyond
    std::size_t own_from = 0;  ///< this token, counted from the sequence's first.
    bool operator==(const Salt&) const = default;
};

class KeyChain {
public:
    KeyChain() = default;
    /// `root` without a salt.
    KeyChain(BlockKeyRoot root, const Salt& salt);

    /// The parent of the sequence's first block.
    [[nodiscard]] const BlockKey& root() const { return root_; }

    /// Of the block of `tokens` whose first is token `begin` of the sequence, behind `parent`.
    [[nodiscard]] BlockKey child(const BlockKey& parent, std::size_t begin,
                                 std::span<const TokenId> tokens) const;

    /// Of the full blocks of `tokens`, which begin the sequence.
    [[nodiscard]] std::vector<BlockKey> keys(std::span<const TokenId> tokens) const;

private:
    BlockKey root_{};
    std::size_t block_tokens_ = 64;
    std::string own_;
    std::size_t own_from_ = 0;
};

}  // namespace sluice::kv
