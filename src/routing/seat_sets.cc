#include "routing/seat_sets.h"

#include <algorithm>

namespace sluice::routing {

void SeatSets::widen(std::size_t seats) {
    const std::size_t words = (seats + 63) / 64;
    if (words <= words_) return;
    const std::size_t wider = std::max(words, words_ * 2);
    const std::size_t layers = bits_.size() / words_;
    std::vector<std::uint64_t> bits(layers * wider);
    for (std::size_t layer = 0; layer < layers; ++layer)
        std::copy_n(bits_.begin() + layer * words_, words_, bits.begin() + layer * wider);
    bits_ = std::move(bits);
    words_ = wider;
}

std::optional<SeatSets::Number> SeatSets::add() {
    if (!free_.empty()) {
        const Number set = free_.back();
        free_.pop_back();
        return set;
    }
    const std::size_t size = bits_.size() + 2 * words_;
    if (size * sizeof(std::uint64_t) > bytes_max_) return std::nullopt;
    const auto set = static_cast<Number>(bits_.size() / (2 * words_));
    bits_.resize(size);
    return set;
}

void SeatSets::free(Number set) {
    std::ranges::fill(members(set), 0);
    std::ranges::fill(expected(set), 0);
    free_.push_back(set);
}

}  // namespace sluice::routing
