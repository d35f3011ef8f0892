#include "engine/draft_policy.h"

#include <algorithm>
#include <cmath>

namespace sluice::engine {
namespace {

constexpr std::array<std::size_t, 5> kLookupLengths = {0, 1, 2, 4, LookupDrafter::kDraftMax};
/// How much faster a plan with guesses must be: less is noise.
constexpr double kMargin = 1.02;

}  // namespace

std::size_t DraftPolicy::rows(const Load& load, Lengths lengths) {
    std::size_t rows = load.sequences + load.head * lengths.head;
    for (const Lookup& lookup : load.lookups) rows += std::min(lookup.length, lengths.lookup);
    return rows;
}

double DraftPolicy::tokens_per_second(const Load& load, Lengths lengths) const {
    auto tokens = static_cast<double>(load.sequences);
    for (const Lookup& lookup : load.lookups) {
        double all_right = 1.0;
        for (std::size_t i = 0; i < std::min(lookup.length, lengths.lookup); ++i)
            tokens += all_right *= lookup.acceptance;
    }
    double all_right = 1.0;
    for (std::size_t depth = 0; depth < lengths.head; ++depth) {
        all_right *= head_acceptance_[depth].mean;
        tokens += static_cast<double>(load.head) * all_right;
    }
    double seconds = step_costs_.estimate(rows(load, lengths));
    if (load.head > 0 && lengths.head > 0)
        seconds += static_cast<double>(lengths.head) * head_costs_.estimate(load.head);
    return tokens / seconds;
}

DraftPolicy::Lengths DraftPolicy::fastest(const Load& load) const {
    Lengths best;
    double most = tokens_per_second(load, best) * kMargin;
    for (const std::size_t lookup : kLookupLengths) {
        if (lookup > 0 && load.lookups.empty()) break;
        for (std::size_t head = 0; head <= (load.head > 0 ? MtpDrafter::kDraftMax : 0); ++head) {
            const double speed = tokens_per_second(load, {.lookup = lookup, .head = head});
            if (speed <= most) continue;
            most = speed;
            best = {.lookup = lookup, .head = head};
        }
    }
    return best;
}

bool DraftPolicy::is_time_to_try(const Load& load, Lengths other) {
    if (tries_left_ > 0) {
        if (--tries_left_ == 0) tries_plain_ = !tries_plain_;
        return true;
    }
    ++steps_since_try_;
    const bool is_measured = step_costs_.is_measured(rows(load, other)) &&
                             (load.head == 0 || head_costs_.is_measured(load.head));
    if (steps_since_try_ < (is_measured ? try_every_ : kTryUnmeasuredEvery)) return false;
    steps_since_try_ = 0;
    if (is_measured) try_every_ = std::min(2 * try_every_, kTryEveryMost);
    tries_left_ = is_measured ? kTrySteps - 1 : 1;
    return true;
}

DraftPolicy::Lengths DraftPolicy::choose(const Load& load) {
    // A plain step comes first: there is nothing to compare with before.
    if (!step_costs_.is_measured(load.sequences) || (load.lookups.empty() && load.head == 0))
        return {};
    const Lengths best = fastest(load);
    ++steps_since_change_;
    if (best != last_best_) {
        // What was best for long is no more. Lengths that are about equal take turns for nothing.
        if (steps_since_change_ > kTryEveryMost) try_every_ = kTryEvery;
        steps_since_change_ = 0;
        last_best_ = best;
    }
    const Lengths other = alternative(load, best);
    return other != best && is_time_to_try(load, other) ? other : best;
}

// In turns, one longer than the best of each kind, and none at all: what is always in use says
// nothing of what it is compared with.
DraftPolicy::Lengths DraftPolicy::alternative(const Load& load, Lengths best) const {
    Lengths longer = best;
    if (!load.lookups.empty() && best.lookup < LookupDrafter::kDraftMax)
        longer.lookup = *std::ranges::upper_bound(kLookupLengths, best.lookup);
    if (load.head > 0) longer.head = std::min(best.head + 1, MtpDrafter::kDraftMax);
    const bool plain = longer == best || (tries_plain_ && best != Lengths{});
    return plain ? Lengths{} : longer;
}

std::size_t DraftPolicy::head_length() const {
    constexpr double kLeast = 0.6;
    std::size_t length = 0;
    double all_right = 1.0;
    while (length < MtpDrafter::kDraftMax && (all_right *= head_acceptance_[length].mean) >= kLeast)
        ++length;
    return std::max<std::size_t>(length, 1);
}

void DraftPolicy::step_took(std::size_t rows, double seconds) { step_costs_.add(rows, seconds); }

void DraftPolicy::head_took(std::size_t sequences, std::size_t passes, double seconds) {
    head_costs_.add(sequences, seconds / static_cast<double>(passes));
}

void DraftPolicy::head_guessed(std::size_t drafted, std::size_t accepted) {
    constexpr std::size_t kSamplesMax = 64;
    for (std::size_t depth = 0; depth < drafted && depth <= accepted; ++depth) {
        Acceptance& acceptance = head_acceptance_[depth];
        acceptance.samples = std::min(acceptance.samples + 1, kSamplesMax);
        const double right = depth < accepted ? 1.0 : 0.0;
        acceptance.mean += (right - acceptance.mean) / static_cast<double>(acceptance.samples);
    }
}

}  // namespace sluice::engine
