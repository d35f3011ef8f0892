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

    /// Probability that a guess is right if those before it are, from how the guesses so far did:
    /// `draft` looks what has come true, used or not.
    [[nodiscard]] double acceptance() const { return acceptance_; }

private:
    static constexpr std::size_t kContext = 3;  ///< Tokens that must agree.

    static constexpr std::size_t kGrowth =
        1024;  ///< Tokens expected beyond those of the first call.

    void learn(std::span<const TokenId> tokens);
    void count(double right);
    [[nodiscard]] std::uint32_t& place(std::span<const TokenId> run);

    /// Where the tokens after each run of kContext tokens begin, 0 for none. Runs that meet in an entry
    /// overwrite each other, and a late one is the better guess, so the table never grows.
    std::vector<std::uint32_t> places_;
    std::size_t indexed_ = 0;  ///< Runs that end at or before this place are in places_.
    std::size_t length_ = 4;   ///< Good guesses get longer, bad ones shorter.
    double acceptance_ = 0.7;  ///< A running mean; what it starts from counts as two samples.
    std::size_t samples_ = 2;
    // The last guess: the tokens from `guess_from_` on may follow those before `guess_at_`.
    std::size_t guess_from_ = 0;
    std::size_t guess_at_ = 0;
    std::size_t guessed_ = 0;
};

}  // namespace sluice::engine
