#pragma once

// Guesses what a sequence will say next from what it has already seen: where its last three tokens
// stood before, what followed them then may follow again. A question asked twice, code being edited
// and quotations are guessed well, and a guess costs no model.
//
// A draft is only a guess: the engine keeps a token if and only if it is what the sampler picks there.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/sampling_params.h"

namespace sluice::engine {

class LookupDrafter {
public:
    static constexpr std::size_t kDraftMax = 8;

    /// Up to `most` tokens that may follow `tokens`; none if its end is new. `tokens` only grows from
    /// call to call, or was given to another drafter before.
    [[nodiscard]] std::vector<TokenId> draft(std::span<const TokenId> tokens, std::size_t most);

    /// How the last draft did. Good drafts get longer, bad ones shorter.
    void learn(std::size_t drafted, std::size_t accepted);

private:
    static constexpr std::size_t kContext = 3;  ///< Tokens that must agree.

    [[nodiscard]] static std::uint64_t key(std::span<const TokenId> tokens, std::size_t end);

    /// Where the tokens after each run of kContext tokens begin; the last place wins.
    std::unordered_map<std::uint64_t, std::uint32_t> places_;
    std::size_t indexed_ = 0;  ///< Runs that end at or before this place are in places_.
    std::size_t length_ = 4;
};

}  // namespace sluice::engine
