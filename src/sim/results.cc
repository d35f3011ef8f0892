#include "sim/results.h"

#include <algorithm>

namespace sluice::sim {

double TierResults::hit_share() const {
    return prompt_tokens == 0
               ? 0.0
               : static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens);
}

void TierResults::add(const RequestResult& result, const Objectives& objectives) {
    ++requests;
    if (result.ran) {
        prompt_tokens += result.prompt_tokens;
        cached_tokens += result.cached_tokens;
    }
    if (result.outcome == Outcome::kRejected) ++rejected;
    if (result.outcome != Outcome::kOk) return;
    ++completed;
    ttft_ms.add(milliseconds(result.ttft.value_or(result.duration)), 1);
    gaps.merge(result.gaps);
    const auto slow = result.gaps.quantile(0.99);
    const bool in_time = result.ttft && *result.ttft <= objectives.ttft;
    if (in_time && (!slow || *slow <= objectives.tbt)) ++good;
}

void Results::add(const RequestResult& result) {
    all.add(result, objectives);
    tiers[static_cast<std::size_t>(length_bucket(result.prompt_tokens))].add(result, objectives);
    ++outcomes[std::string(to_string(result.outcome))];
    retries += result.retries;
    resumes += result.resumes;
    fallbacks += result.fallbacks;
    elapsed = std::max(elapsed, result.arrival + result.duration);
}

double Results::imbalance() const {
    std::uint64_t busiest = 0;
    std::uint64_t total = 0;
    std::uint64_t count = 0;
    for (const WorkerResults& worker : workers) {
        busiest = std::max(busiest, worker.prefill_tokens);
        total += worker.prefill_tokens;
        if (worker.computes_prompts) ++count;
    }
    if (total == 0) return 1.0;
    return static_cast<double>(busiest) * static_cast<double>(count) / static_cast<double>(total);
}

double Results::goodput_rps() const {
    return elapsed > Duration::zero() ? static_cast<double>(all.good) / seconds(elapsed) : 0.0;
}

double Results::rejected_share() const {
    return all.requests == 0
               ? 0.0
               : static_cast<double>(all.rejected) / static_cast<double>(all.requests);
}

}  // namespace sluice::sim
