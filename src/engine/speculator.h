#pragma once

// Speculation: gives decoding sequences guesses of their next tokens before a step, and learns from
// what became of them. A sequence whose end stood in its past before is guessed by look-up, others by
// the model's MTP head. The step checks every guess (docs/exactness.md, rule 11); nothing here can
// change a token.

#include <chrono>
#include <memory>
#include <vector>

#include "engine/draft_policy.h"
#include "engine/mtp_drafter.h"
#include "engine/scheduler.h"

namespace sluice::engine {

/// Where guesses of the next tokens come from. The tokens are the same with all of them.
enum class Speculation : std::uint8_t {
    kOff,
    kLookup,  ///< The sequence's own past (lookup_drafter.h), as long as the batch is small.
    kMtp,     ///< The model's MTP head, which must be there (mtp_drafter.h); likewise.
    kAuto,    ///< Both, as far as they were measured to be faster (draft_policy.h).
};

class Speculator {
public:
    /// Whether the model's MTP head will guess, with a cache of its own.
    [[nodiscard]] static bool uses_head(Speculation kind, const Model& model);

    /// `forward` takes `rows_max` rows and outlives the speculator; up to `sequences_max` run.
    /// Error `kUnsupported`: the model has no MTP head. Other kinds than kMtp do without.
    [[nodiscard]] static Result<std::unique_ptr<Speculator>> create(
        Speculation kind, const std::shared_ptr<const Model>& model, Forward& forward,
        std::size_t rows_max, std::size_t sequences_max);

    /// Fills the drafts of the sequences that the next step decodes. Computes with `forward` if the
    /// head guesses.
    void propose(Scheduler& scheduler);

    /// After forward's pass: rows `row`.. were `count` positions of `sequence`, from `position` on, that
    /// stay.
    void remember(Sequence& sequence, std::size_t row, std::size_t position, std::size_t count);

    /// `drafted` of the sequence's guesses were checked.
    void learn(const Sequence& sequence, std::size_t drafted);

    /// A step of `rows` rows that decoded and did nothing else.
    void step_took(std::size_t rows, std::chrono::nanoseconds duration);

private:
    Speculator(Speculation kind, std::unique_ptr<MtpDrafter> head, std::size_t sequences_max);
    void gather(Scheduler& scheduler);
    [[nodiscard]] DraftPolicy::Lengths choose(std::size_t running);
    void guess_by_head(std::size_t length);

    Speculation kind_;
    std::unique_ptr<MtpDrafter> head_;  ///< Null if the head is not used.
    DraftPolicy policy_;

    // Of one `propose`.
    std::size_t decoding_ = 0;
    std::vector<Sequence*> looked_up_;  ///< With a draft; `lookups_` has the same order.
    std::vector<DraftPolicy::Lookup> lookups_;
    std::vector<MtpDrafter::Wish> wishes_;  ///< Of all that the head could guess for.
};

}  // namespace sluice::engine
