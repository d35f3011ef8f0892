#pragma once

// Guesses what a sequence will say next from what it has already seen: where its last three tokens
// stood before, what followed them then may follow again. A question asked twice, code being edited
// and quotations are guessed well, and a guess costs no model.
//
// A draft is only a guess: the engine keeps a token if and only if it is what the sampler picks there.

#include <cstdint>
#include <span>
#include <vector>

#include "base/sampling_params.h"

namespace sluice::engine {

class LookupDrafter {
public:
    static constexpr std::size_t kDraftMax = 8;

    /// Up to `most` tokens that may follow `tokens`, a part of it; none if its end is new. `tokens`
    /// only grows from call to call. The first call allocates, the others do not.
    [[nodiscard]] std::span<const TokenId> draft(std::span<const TokenId> tokens, std::size_t most);

    /// How the last draft did. Good drafts get longer, bad ones shorter.
    void learn(std::size_t drafted, std::size_t accepted);

private:
    static constexpr std::size_t kContext = 3;  ///< Tokens that must agree.

    static constexpr std::size_t kGrowth =
        1024;  ///< Tokens expected beyond those of the first call.

    [[nodiscard]] std::uint32_t& place(std::span<const TokenId> run);

    /// Where the tokens after each run of kContext tokens begin, 0 for none. Runs that meet in an entry
    /// overwrite each other, and a late one is the better guess, so the table never grows.
    std::vector<std::uint32_t> places_;
    std::size_t indexed_ = 0;  ///< Runs that end at or before this place are in places_.
    std::size_t length_ = 4;
};

}  // namespace sluice::engine
