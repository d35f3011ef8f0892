#include "text/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/assert.h"

namespace sluice::text {
namespace {

// Below this, scanning beats the heap; nearly all pieces of real text are shorter.
constexpr std::size_t kShortPiece = 48;

constexpr std::uint64_t pair_of(TokenId left, TokenId right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
           static_cast<std::uint32_t>(right);
}

/// One symbol of a long piece; symbols form a list by position.
struct Symbol {
    TokenId id;
    std::int32_t previous;
    std::int32_t next;   ///< -1 at the end.
    std::uint32_t rank;  ///< Of the merge with `next`; "none" once the symbol is merged away.
};

}  // namespace

BytePairEncoder::BytePairEncoder(std::size_t merges)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * merges, 2))),
      shift_(64 - std::countr_zero(slots_.size())) {
    results_.reserve(merges);
}

std::size_t BytePairEncoder::slot_of(std::uint64_t pair) const {
    std::size_t slot = (pair * 0x9E3779B97F4A7C15ULL) >> shift_;
    while (slots_[slot].rank != kNoMerge && slots_[slot].pair != pair) {
        slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
}

bool BytePairEncoder::add_merge(TokenId left, TokenId right, TokenId result) {
    SLUICE_ASSERT(2 * (results_.size() + 1) <= slots_.size());
    Slot& slot = slots_[slot_of(pair_of(left, right))];
    if (slot.rank != kNoMerge) return false;
    slot = {.pair = pair_of(left, right), .rank = static_cast<Rank>(results_.size())};
    results_.push_back(result);
    return true;
}

BytePairEncoder::Rank BytePairEncoder::rank_of(TokenId left, TokenId right) const {
    return slots_[slot_of(pair_of(left, right))].rank;
}

void BytePairEncoder::encode(std::string_view piece, std::vector<TokenId>& out) const {
    if (piece.empty()) return;
    if (piece.size() <= kShortPiece) {
        encode_short(piece, out);
    } else {
        encode_long(piece, out);
    }
}

void BytePairEncoder::encode_short(std::string_view piece, std::vector<TokenId>& out) const {
    std::array<TokenId, kShortPiece> ids;
    std::array<Rank, kShortPiece> ranks;  // ranks[i] merges i with i + 1.
    std::size_t size = piece.size();
    for (std::size_t i = 0; i < size; ++i) ids[i] = byte_ids_[static_cast<std::uint8_t>(piece[i])];
    for (std::size_t i = 0; i + 1 < size; ++i) ranks[i] = rank_of(ids[i], ids[i + 1]);

    while (size > 1) {
        const auto best = std::min_element(ranks.begin(), ranks.begin() + (size - 1));
        if (*best == kNoMerge) break;
        const auto at = static_cast<std::size_t>(best - ranks.begin());
        ids[at] = results_[*best];
        std::copy(ids.begin() + at + 2, ids.begin() + size, ids.begin() + at + 1);
        std::copy(ranks.begin() + at + 1, ranks.begin() + (size - 1), ranks.begin() + at);
        --size;
        if (at > 0) ranks[at - 1] = rank_of(ids[at - 1], ids[at]);
        if (at + 1 < size) ranks[at] = rank_of(ids[at], ids[at + 1]);
    }
    out.insert(out.end(), ids.begin(), ids.begin() + size);
}

void BytePairEncoder::encode_long(std::string_view piece, std::vector<TokenId>& out) const {
    SLUICE_ASSERT(piece.size() <= std::numeric_limits<std::int32_t>::max());
    const auto size = static_cast<std::int32_t>(piece.size());
    std::vector<Symbol> symbols(piece.size());
    for (std::int32_t i = 0; i < size; ++i) {
        symbols[i] = {.id = byte_ids_[static_cast<std::uint8_t>(piece[i])],
                      .previous = i - 1,
                      .next = i + 1 < size ? i + 1 : -1,
                      .rank = kNoMerge};
    }

    // Candidates as rank << 32 | position: the order of the numbers is the order of merging. An
    // entry is stale unless its symbol still has that rank; equal rank means the same pair.
    std::vector<std::uint64_t> heap;
    heap.reserve(piece.size());
    const auto candidate = [&](std::int32_t at) {
        Symbol& symbol = symbols[at];
        symbol.rank = symbol.next < 0 ? kNoMerge : rank_of(symbol.id, symbols[symbol.next].id);
        if (symbol.rank == kNoMerge) return false;
        heap.push_back((std::uint64_t{symbol.rank} << 32) | static_cast<std::uint32_t>(at));
        return true;
    };
    for (std::int32_t i = 0; i < size; ++i) candidate(i);
    std::make_heap(heap.begin(), heap.end(), std::greater<>());

    while (!heap.empty()) {
        const auto rank = static_cast<Rank>(heap.front() >> 32);
        const auto at = static_cast<std::int32_t>(heap.front() & 0xFFFFFFFFU);
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        heap.pop_back();
        Symbol& symbol = symbols[at];
        if (symbol.rank != rank) continue;

        Symbol& merged = symbols[symbol.next];
        symbol.id = results_[rank];
        symbol.next = merged.next;
        merged.rank = kNoMerge;
        if (symbol.next >= 0) symbols[symbol.next].previous = at;
        if (candidate(at)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
        if (symbol.previous >= 0 && candidate(symbol.previous)) {
            std::push_heap(heap.begin(), heap.end(), std::greater<>());
        }
    }
    for (std::int32_t at = 0; at >= 0; at = symbols[at].next) out.push_back(symbols[at].id);
}

}  // namespace sluice::text
