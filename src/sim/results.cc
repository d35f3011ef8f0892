#include "sim/results.h"

#include <algorithm>

namespace sluice::sim {

namespace {

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double TierResults::hit_share() const { return share(cached.sum(), prompt_tokens); }

double TierResults::hit_share(CacheSource source) const {
    return share(cached.from(source), prompt_tokens);
}

void TierResults::add(const RequestResult& result, const Objectives& objectives) {
    ++requests;
    if (result.ran) {
        prompt_tokens += result.prompt_tokens;
        cached += result.cached;
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

double Results::rejected_share() const { return share(all.rejected, all.requests); }

}  // namespace sluice::sim
