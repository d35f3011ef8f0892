#pragma once

// From the bytes of a token to its id. Immutable once filled; the tokens stay with the caller.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sampling_params.h"

namespace sluice::text {

class PieceTable {
public:
    static constexpr TokenId kNone = -1;

    /// Room for `pieces` entries.
    explicit PieceTable(std::size_t pieces);

    /// Enters `tokens[id]`. Returns the id that has these bytes already, or kNone if it went in.
    [[nodiscard]] TokenId add(std::span<const std::string> tokens, TokenId id);

    /// The id of `piece`, or kNone. `tokens` must be what `add` was given.
    [[nodiscard]] TokenId find(std::span<const std::string> tokens, std::string_view piece) const;

private:
    struct Slot {
        std::uint32_t hash = 0;  ///< Spares most comparisons of bytes.
        TokenId id = kNone;
    };

    [[nodiscard]] std::size_t slot_of(std::span<const std::string> tokens, std::string_view piece,
                                      std::size_t hash) const;

    std::vector<Slot> slots_;  ///< Open addressing, a power of two, at most half full.
    std::size_t size_ = 0;
};

}  // namespace sluice::text
