#include "routing/cost_model.h"

#include <algorithm>

namespace sluice::routing {

std::uint64_t tokens_to_compute(const Costs& costs, std::uint64_t matched, std::uint64_t tokens) {
    if (matched < costs.min_hit) matched = 0;
    const std::uint64_t miss = tokens - std::min(matched, tokens);
    const std::uint64_t least = std::max<std::uint64_t>(1, matched > 0 ? costs.replay : 0);
    return std::min(tokens, std::max(miss, least));
}

double prefill_work(const Costs& costs, std::uint64_t computed, std::uint64_t tokens) {
    const auto to = static_cast<double>(tokens);
    const auto count = static_cast<double>(computed);
    if (costs.attention_tokens <= 0.0) return count;
    const double from = to - count;
    return count + count * (from + to) / (2.0 * costs.attention_tokens);
}

}  // namespace sluice::routing
