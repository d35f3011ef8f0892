#pragma once

// Decides how many tokens a step guesses, from what guessing was measured to bring and to cost: how
// often guesses are right, how long passes over so many rows take at present, and what the MTP head
// takes. The lengths with the most tokens a second are used, and none if that is what is fastest.
//
// Lengths that are not in use are tried for a few steps now and then, and at once where a number of
// rows was never measured: a machine that got slower, or a model that guesses well, is noticed. As long
// as nothing better is found, tries get rarer, so that looking costs less than a hundredth.
// A decision changes when tokens come, never which. It knows no clock; seconds are given to it.

#include <array>
#include <cstddef>
#include <span>

#include "engine/lookup_drafter.h"
#include "engine/mtp_drafter.h"
#include "engine/row_costs.h"

namespace sluice::engine {

class DraftPolicy {
public:
    /// A guess that look-up has for one sequence.
    struct Lookup {
        std::size_t length = 0;
        double acceptance = 0.0;  ///< Probability that a guess is right if those before it are.
    };
    struct Load {
        std::size_t sequences = 0;  ///< That decode; the lookups' and the head's are among them.
        std::span<const Lookup> lookups;
        std::size_t head = 0;  ///< Sequences that the MTP head could guess for.
    };
    /// Most tokens for each sequence.
    struct Lengths {
        std::size_t lookup = 0;
        std::size_t head = 0;
        bool operator==(const Lengths&) const = default;
    };

    /// The lengths for a step.
    [[nodiscard]] Lengths choose(const Load& load);
    /// The head's length by its acceptance alone, whatever it costs.
    [[nodiscard]] std::size_t head_length() const;

    /// A step that decoded `rows` rows, guesses included, and nothing else.
    void step_took(std::size_t rows, double seconds);
    /// The head guessed for `sequences` sequences in `passes` passes.
    void head_took(std::size_t sequences, std::size_t passes, double seconds);
    /// Of `drafted` guesses of the head for one sequence, the first `accepted` were right.
    void head_guessed(std::size_t drafted, std::size_t accepted);

private:
    [[nodiscard]] static std::size_t rows(const Load& load, Lengths lengths);
    [[nodiscard]] double tokens_per_second(const Load& load, Lengths lengths) const;
    [[nodiscard]] Lengths fastest(const Load& load) const;
    /// What to try when it is time to.
    [[nodiscard]] Lengths alternative(const Load& load, Lengths best) const;
    /// Whether the next step should use other lengths than the best ones.
    [[nodiscard]] bool is_time_to_try(const Load& load, Lengths other);

    RowCosts step_costs_;  ///< By rows of a step.
    RowCosts head_costs_;  ///< Of one pass of the head, by sequences.
    /// Probability that the head's guess at a depth is right if those before it are; hopeful at first.
    struct Acceptance {
        double mean = 0.75;
        std::size_t samples = 1;
    };
    std::array<Acceptance, MtpDrafter::kDraftMax> head_acceptance_{};
    std::size_t steps_since_try_ = kTryUnmeasuredEvery;
    std::size_t tries_left_ = 0;
    std::size_t try_every_ = kTryEvery;
    Lengths last_best_;
    std::size_t steps_since_change_ = 0;  ///< Of the best lengths.
    bool tries_plain_ = false;

    static constexpr std::size_t kTryEvery = 64;
    static constexpr std::size_t kTryEveryMost = 1'024;
    static constexpr std::size_t kTrySteps = 2;
    static constexpr std::size_t kTryUnmeasuredEvery = 8;
};

}  // namespace sluice::engine
