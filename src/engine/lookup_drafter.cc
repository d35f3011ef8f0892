#include "engine/lookup_drafter.h"

#include <algorithm>
#include <bit>

namespace sluice::engine {

std::uint32_t& LookupDrafter::place(std::span<const TokenId> run) {
    std::uint64_t hash = 0;
    for (const TokenId token : run)
        hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x9E37'79B9'7F4A'7C15U;
    return places_[hash >> 32 & (places_.size() - 1)];
}

std::span<const TokenId> LookupDrafter::draft(std::span<const TokenId> tokens, std::size_t most) {
    learn(tokens);
    if (places_.empty()) places_.resize(std::bit_ceil(2 * (tokens.size() + kGrowth)));
    // The last run itself is looked up, not indexed: it would find itself.
    for (std::size_t end = std::max(indexed_ + 1, kContext); end < tokens.size(); ++end) {
        place(tokens.subspan(end - kContext, kContext)) = static_cast<std::uint32_t>(end);
        indexed_ = end;
    }
    if (tokens.size() < kContext) return {};
    const std::span<const TokenId> run = tokens.last(kContext);
    const std::size_t found = place(run);
    if (found == 0 || !std::ranges::equal(tokens.subspan(found - kContext, kContext), run))
        return {};
    const std::span<const TokenId> following = tokens.subspan(found);
    guess_from_ = found;
    guess_at_ = tokens.size();
    guessed_ = std::min({following.size(), most, length_});
    return following.first(guessed_);
}

void LookupDrafter::learn(std::span<const TokenId> tokens) {
    const std::size_t known = std::min(guessed_, tokens.size() - guess_at_);
    std::size_t right = 0;
    while (right < known && tokens[guess_at_ + right] == tokens[guess_from_ + right]) {
        count(1.0);
        ++right;
    }
    if (right < known) {
        count(0.0);
        length_ = right + 1;
    } else if (known > 0 && known == guessed_) {
        length_ = std::min(kDraftMax, length_ * 2);
    }
    guessed_ = 0;
}

void LookupDrafter::count(double right) {
    constexpr std::size_t kSamplesMax = 8;
    samples_ = std::min(samples_ + 1, kSamplesMax);
    acceptance_ += (right - acceptance_) / static_cast<double>(samples_);
}

}  // namespace sluice::engine
