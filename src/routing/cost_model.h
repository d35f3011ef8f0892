#pragma once

// What a prompt costs an engine, before anybody has measured this prompt.

#include <algorithm>
#include <cstdint>

namespace sluice::routing {

/// Of one worker. What is not known has a value that compares workers fairly, if not rightly.
struct Costs {
    /// At the start of a prompt, where attention costs nothing.
    double prefill_tokens_per_second = 10'000.0;
    /// The position at which a token's attention costs as much as the rest of it; 0: never.
    double attention_tokens = 0.0;
    /// To bring a cached token to where it can be used; 0 for what is in the engine's own pool.
    double load_seconds_per_token = 0.0;
    /// To bring one in from a cache node, which holds it for every worker; and from another worker.
    /// Until somebody has measured it: near enough to nothing that a hot prefix spreads.
    double store_seconds_per_token = 1e-5;
    double peer_seconds_per_token = 1e-5;
    std::uint64_t kv_tokens = 0;      ///< The engine's pool holds; 0 is unknown.
    std::uint32_t block_tokens = 64;  ///< A block of `Demand::blocks` has.
    std::uint32_t replay = 0;         ///< Tokens to compute again before a hit is usable.
    std::uint32_t min_hit = 0;        ///< Shorter hits are none.
};

/// Tokens of a prompt of `tokens` that a worker with `matched` of them cached has to compute: the
/// last one is always computed, it is what the next token comes from.
[[nodiscard]] inline std::uint64_t tokens_to_compute(const Costs& costs, std::uint64_t matched,
                                                     std::uint64_t tokens) {
    if (matched < costs.min_hit) matched = 0;
    const std::uint64_t miss = tokens - std::min(matched, tokens);
    const std::uint64_t least = std::max<std::uint64_t>(1, matched > 0 ? costs.replay : 0);
    return std::min(tokens, std::max(miss, least));
}

/// Computing the last `computed` of `tokens`, in tokens at the start of a prompt: a token at
/// position p attends to p others and so costs 1 + p / attention_tokens.
[[nodiscard]] inline double prefill_work(const Costs& costs, std::uint64_t computed,
                                         std::uint64_t tokens) {
    const auto to = static_cast<double>(tokens);
    const auto count = static_cast<double>(computed);
    if (costs.attention_tokens <= 0.0) return count;
    const double from = to - count;
    return count + count * (from + to) / (2.0 * costs.attention_tokens);
}

}  // namespace sluice::routing
