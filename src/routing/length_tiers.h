#pragma once

// Keeps short prompts from waiting behind long ones.
//
// A request belongs to a tier by the prefill work that is left of it: a long prompt that is cached is
// a short request. Of each tier's requests so many workers are kept free as shorter ones need, by
// their share of the work of the last half minute. Which workers these are is left to the moment: a
// long prompt may go anywhere, unless too few would be left without one. Where nobody short has come
// for a while nothing is kept.
//
// Not thread-safe.

#include <algorithm>
#include <array>
#include <cstdint>

#include "routing/time.h"

namespace sluice::routing {

class LengthTiers {
public:
    static constexpr int kTiers = 4;

    /// <= 16 K tokens, to 64 K, to 256 K, more; K is 1,024.
    [[nodiscard]] static int tier_of(std::uint64_t tokens) {
        return static_cast<int>(std::ranges::lower_bound(kLongest, tokens) - kLongest.begin());
    }

    /// The most tokens that a request of the tier below has; 0 for the first.
    [[nodiscard]] static std::uint64_t longest_below(int tier) {
        return tier == 0 ? 0 : kLongest[tier - 1];
    }

    /// A request with so many tokens and so much work left was given to a worker.
    void on_pick(std::uint64_t tokens, double work, Time now);

    /// For each tier, how many of `workers` workers are to be without its requests; less than
    /// `workers`, unless that is 0.
    [[nodiscard]] std::array<std::uint32_t, kTiers> kept_for_shorter(std::uint32_t workers,
                                                                     Time now) const;

private:
    static constexpr std::array<std::uint64_t, kTiers - 1> kLongest{16 * 1024, 64 * 1024,
                                                                    256 * 1024};

    [[nodiscard]] double faded(Time now) const;

    std::array<double, kTiers> work_{};  ///< Of each tier, fading; as of `at_`.
    Time at_{};
};

}  // namespace sluice::routing
