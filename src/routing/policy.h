#pragma once

// How good a worker is for a request: a number that is lower for the better one.
//
// Prefill (and a worker that does all) is judged by the time to the first token: what waits there,
// what of the cache must be brought in, and what is left to compute. So a cached prefix attracts for
// as much as it saves - no more than a load, where a cache node or another worker holds it, too - less
// with every request that waits there, and nothing once computing it elsewhere is sooner. Decode is judged by how full the worker would be, in keys and values or in
// requests, whichever is more; encode by the image tokens that wait.

#include <cstdint>
#include <optional>
#include <string_view>

#include "routing/demand.h"

namespace sluice::routing {

enum class Policy : std::uint8_t {
    kDefault,      ///< Per phase, as above.
    kRoundRobin,   ///< In turns. To compare with.
    kLeastLoaded,  ///< Fewest requests by weight; for engines that say nothing of themselves.
    kOverlap,      ///< Longest cached prefix, whatever waits there. To compare with: it collapses.
};

/// "default", "round_robin", "least_loaded", "overlap"
[[nodiscard]] std::string_view to_string(Policy policy);
[[nodiscard]] std::optional<Policy> parse_policy(std::string_view name);

/// All that a worker is judged by.
struct Candidate {
    const Costs* costs = nullptr;
    double seconds_per_work = 1e-4;  ///< One unit of `prefill_work`.
    double pressure = 1.0;           ///< What backpressure left of its share, in (0, 1].
    double ramp = 1.0;               ///< What a new one has of its share, in (0, 1].
    std::uint32_t capacity = 0;      ///< Requests at a time; 0 is unknown.
    Load load{};                     ///< All that is there already.
    std::uint64_t matched_tokens = 0;
    /// Tokens that lie elsewhere, at cache nodes or at another worker, and what one takes to come.
    std::uint64_t elsewhere_tokens = 0;
    double elsewhere_seconds_per_token = 0.0;
};

struct Score {
    double value = 0.0;  ///< Lower is better; of equals the one whose turn it is.
    double ttft = 0.0;   ///< Seconds to the first token.
    double work = 0.0;   ///< Own and waiting, of which `ttft` is made.
    Load load{};         ///< What the request adds.
};

/// More matched tokens never make a score worse, all else equal.
[[nodiscard]] Score judge(Policy policy, const Demand& demand, const Candidate& worker);

}  // namespace sluice::routing
