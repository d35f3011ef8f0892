#include "engine/lookup_drafter.h"

#include <algorithm>

namespace sluice::engine {

// Vocabularies are below 2^21, so three ids fit; equal keys are equal runs.
std::uint64_t LookupDrafter::key(std::span<const TokenId> tokens, std::size_t end) {
    constexpr int kBits = 21;
    std::uint64_t key = 0;
    for (std::size_t i = end - kContext; i < end; ++i)
        key = key << kBits | (static_cast<std::uint64_t>(tokens[i]) & ((1U << kBits) - 1));
    return key;
}

std::vector<TokenId> LookupDrafter::draft(std::span<const TokenId> tokens, std::size_t most) {
    // The last run itself is looked up, not indexed: it would find itself.
    for (std::size_t end = std::max(indexed_ + 1, kContext); end < tokens.size(); ++end) {
        places_[key(tokens, end)] = static_cast<std::uint32_t>(end);
        indexed_ = end;
    }
    if (tokens.size() < kContext) return {};
    const auto place = places_.find(key(tokens, tokens.size()));
    if (place == places_.end()) return {};
    const auto following = tokens.subspan(place->second);
    const std::size_t count = std::min({following.size(), most, length_});
    return {following.begin(), following.begin() + static_cast<std::ptrdiff_t>(count)};
}

void LookupDrafter::learn(std::size_t drafted, std::size_t accepted) {
    if (drafted == 0) return;
    length_ = accepted == drafted ? std::min(kDraftMax, length_ * 2) : accepted + 1;
}

}  // namespace sluice::engine
