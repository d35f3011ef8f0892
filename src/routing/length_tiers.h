#pragma once

// Keeps short prompts from waiting behind long ones.
//
// A request belongs to a tier by the prefill work that is left of it: a long prompt that is cached is
// a short request. Requests of a tier may run on the workers from a certain place on; below it are
// those that shorter tiers need, by their share of the work of the last half minute. So a short
// request may run everywhere, and the longest on the last few. Where nobody short has come for a
// while nothing is kept free for them.
//
// Not thread-safe.

#include <array>
#include <cstdint>

#include "routing/time.h"

namespace sluice::routing {

class LengthTiers {
public:
    static constexpr int kTiers = 4;

    /// <= 16 K tokens, to 64 K, to 256 K, more; K is 1,024.
    [[nodiscard]] static int tier_of(std::uint64_t tokens);

    /// A request with so many tokens and so much work left was given to a worker.
    void on_pick(std::uint64_t tokens, double work, Time now);

    /// For each tier, the first of `workers` workers that its requests may run on; less than
    /// `workers`, unless that is 0.
    [[nodiscard]] std::array<std::uint32_t, kTiers> first_workers(std::uint32_t workers,
                                                                  Time now) const;

private:
    [[nodiscard]] double faded(Time now) const;

    std::array<double, kTiers> work_{};  ///< Of each tier, fading; as of `at_`.
    Time at_{};
};

}  // namespace sluice::routing
