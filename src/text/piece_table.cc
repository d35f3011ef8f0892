#include "text/piece_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/assert.h"

namespace sluice::text {

PieceTable::PieceTable(std::size_t pieces)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * pieces, 2))) {}

TokenId PieceTable::add(std::span<const std::string> tokens, TokenId id) {
    SLUICE_ASSERT(2 * (size_ + 1) <= slots_.size());
    const std::string_view piece = tokens[static_cast<std::size_t>(id)];
    const std::size_t hash = std::hash<std::string_view>()(piece);
    Slot& slot = slots_[slot_of(tokens, piece, hash)];
    if (slot.id != kNone) return slot.id;
    slot = {.hash = static_cast<std::uint32_t>(hash), .id = id};
    ++size_;
    return kNone;
}

TokenId PieceTable::find(std::span<const std::string> tokens, std::string_view piece) const {
    return slots_[slot_of(tokens, piece, std::hash<std::string_view>()(piece))].id;
}

std::size_t PieceTable::slot_of(std::span<const std::string> tokens, std::string_view piece,
                                std::size_t hash) const {
    std::size_t at = hash & (slots_.size() - 1);
    while (true) {
        const Slot& slot = slots_[at];
        if (slot.id == kNone) return at;
        if (slot.hash == static_cast<std::uint32_t>(hash) &&
            tokens[static_cast<std::size_t>(slot.id)] == piece) {
            return at;
        }
        at = (at + 1) & (slots_.size() - 1);
    }
}

}  // namespace sluice::text
