#include "record/card_builder.h"

#include <algorithm>

namespace sluice::record {
namespace {

double ms(std::chrono::microseconds duration) {
    return static_cast<double>(duration.count()) / 1000.0;
}

std::optional<double> share(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
}

/// Whether all of a pool's rows came from engines whose tokens depend on the request alone.
bool is_exact(const std::map<std::string, std::vector<CardVersion>>& versions,
              const std::string& pool) {
    const auto found = versions.find(pool);
    return found != versions.end() && !found->second.empty() &&
           std::ranges::all_of(found->second, [](const CardVersion& version) {
               return version.manifest.engine == "native";
           });
}

}  // namespace

std::uint64_t CardGroup::successes() const {
    const auto ok = outcomes.find(Outcome::kOk);
    return ok == outcomes.end() ? 0 : ok->second;
}

std::uint64_t CardGroup::answerable() const {
    std::uint64_t sum = successes();
    for (const auto& [outcome, count] : outcomes) {
        if (is_pools_failure(outcome)) sum += count;
    }
    return sum;
}

void CardBuilder::compare(const RequestRow& row, CardGroup& group) {
    if (!row.comparison) return;
    const bool differs = !row.comparison->differences.empty();
    if (row.comparison->pool == row.pool) {
        group.noise_compared += row.weight;
        group.noise_differing += differs ? row.weight : 0;
        if (row.ttft) group.noise_ttft.add(ms(*row.ttft), row.weight);
    } else if (row.comparison->pool == options_.baseline) {
        group.compared += row.weight;
        group.differing += differs ? row.weight : 0;
    }
}

void CardBuilder::count_versions(const RequestRow& row) {
    std::vector<std::string> seen;
    for (const Leg& leg : row.legs) {
        if (leg.pool != row.pool || leg.fingerprint.empty()) continue;
        if (std::ranges::find(seen, leg.fingerprint) != seen.end()) continue;
        seen.push_back(leg.fingerprint);
        versions_[row.pool][leg.fingerprint] += row.weight;
    }
}

void CardBuilder::add(const RequestRow& row, double cost) {
    if (row.pool.empty() || (row.pool != options_.baseline && row.pool != options_.candidate))
        return;
    CardGroup& group = groups_[{row.bucket(), row.kind}][row.pool];
    group.requests += row.weight;
    group.outcomes[row.outcome] += row.weight;
    group.prompt_tokens += row.prompt_tokens * row.weight;
    group.cached_tokens += row.cached_tokens * row.weight;
    group.recomputed_tokens += row.recomputed_tokens * row.weight;
    group.device_memory_bytes = std::max(group.device_memory_bytes, row.device_memory_bytes);
    group.cost += cost;
    if (row.ttft) group.ttft.add(ms(*row.ttft), row.weight);
    if (!row.gaps.empty()) {
        group.gaps.merge(row.gaps, row.weight);
        group.tbt_p50.add(ms(*row.gaps.quantile(0.5)), row.weight);
        group.tbt_p99.add(ms(*row.gaps.quantile(0.99)), row.weight);
    }
    compare(row, group);
    count_versions(row);
}

CardRow CardBuilder::make_row(Class of, const std::string& pool, const CardGroup& group) const {
    return {.bucket = of.first,
            .kind = of.second,
            .pool = pool,
            .requests = group.requests,
            .outcomes = group.outcomes,
            .ttft = percentiles(group.ttft),
            .tbt = percentiles(group.gaps),
            .cached_share = share(group.cached_tokens, group.prompt_tokens),
            .recomputed_share = share(group.recomputed_tokens, group.prompt_tokens),
            .device_memory_bytes = group.device_memory_bytes,
            .cost = group.cost,
            .differs_share = pool == options_.baseline
                                 ? share(group.noise_differing, group.noise_compared)
                                 : share(group.differing, group.compared),
            .ttft_samples = group.ttft,
            .gaps = group.gaps};
}

std::map<std::string, std::vector<CardVersion>> CardBuilder::versions() const {
    std::map<std::string, std::vector<CardVersion>> all;
    for (const auto& [pool, counts] : versions_) {
        for (const auto& [fingerprint, requests] : counts) {
            const auto manifest = manifests_.find(fingerprint);
            all[pool].push_back(
                {.fingerprint = fingerprint,
                 .requests = requests,
                 .manifest = manifest == manifests_.end() ? VersionManifest{} : manifest->second});
        }
        std::ranges::stable_sort(all[pool], std::greater{}, &CardVersion::requests);
    }
    return all;
}

Card CardBuilder::build() const {
    Card card{.baseline = options_.baseline,
              .candidate = options_.candidate,
              .since = options_.since,
              .from_ms = options_.from_ms,
              .to_ms = options_.to_ms,
              .min_samples = options_.min_samples,
              .versions = versions()};
    const bool exact = is_exact(card.versions, options_.baseline);
    for (const auto& [of, by_pool] : groups_) {
        const auto found = by_pool.find(options_.baseline);
        CardGroup baseline = found == by_pool.end() ? CardGroup{} : found->second;
        baseline.exact = exact;
        if (found != by_pool.end()) {
            CardRow row = make_row(of, options_.baseline, baseline);
            row.noise_floor = noise_floor(baseline);
            row.verdict = Verdict::kSame;  // As itself.
            card.rows.push_back(std::move(row));
        }
        const auto candidate = by_pool.find(options_.candidate);
        if (candidate == by_pool.end() || options_.candidate == options_.baseline) continue;
        CardRow row = make_row(of, options_.candidate, candidate->second);
        row.noise_floor = noise_floor(baseline);
        row.judgements = judge(baseline, candidate->second, options_.min_samples);
        row.verdict = verdict_of(row.judgements);
        card.rows.push_back(std::move(row));
    }
    return card;
}

}  // namespace sluice::record
