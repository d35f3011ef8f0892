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
    return following.first(std::min({following.size(), most, length_}));
}

void LookupDrafter::learn(std::size_t drafted, std::size_t accepted) {
    if (drafted == 0) return;
    length_ = accepted == drafted ? std::min(kDraftMax, length_ * 2) : accepted + 1;
}

}  // namespace sluice::engine
