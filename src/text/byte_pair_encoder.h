#pragma once

// Byte-pair merging of one piece: the pair of lowest rank first, the leftmost of equals.
//
// Short pieces are merged by scanning, long ones through a heap over a linked list, so a piece of n
// bytes costs O(n log n) whatever it holds. Both ways give the same ids. Immutable once filled.

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/sampling_params.h"

namespace sluice::text {

class BytePairEncoder {
public:
    /// Room for `merges` rules.
    explicit BytePairEncoder(std::size_t merges);

    void set_byte(std::uint8_t byte, TokenId id) { byte_ids_[byte] = id; }

    /// Adds the rule of the next rank. False if the pair has a rule already.
    [[nodiscard]] bool add_merge(TokenId left, TokenId right, TokenId result);

    /// Appends the ids of `piece`, which must be shorter than 2^31 bytes. All bytes must be set.
    void encode(std::string_view piece, std::vector<TokenId>& out) const;

private:
    using Rank = std::uint32_t;
    static constexpr Rank kNoMerge = std::numeric_limits<Rank>::max();

    struct Slot {
        std::uint64_t pair = 0;
        Rank rank = kNoMerge;  ///< kNoMerge marks a free slot.
    };

    [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const;
    [[nodiscard]] Rank rank_of(TokenId left, TokenId right) const;
    void encode_short(std::string_view piece, std::vector<TokenId>& out) const;
    void encode_long(std::string_view piece, std::vector<TokenId>& out) const;

    std::array<TokenId, 256> byte_ids_{};
    std::vector<TokenId> results_;  ///< By rank.
    std::vector<Slot> slots_;       ///< Open addressing, a power of two, at most half full.
    int shift_;                     ///< Keeps as many top bits of the hash as slots_ needs.
};

}  // namespace sluice::text
