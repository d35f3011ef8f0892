#include "sim/sim_report.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string_view>

#include "record/percentiles.h"

namespace sluice::sim {
namespace {

namespace json = boost::json;
using record::Percentiles;
using record::percentiles;
using record::to_object;

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

json::object tier_json(std::string_view name, const TierResults& tier) {
    return {{"tier", name},
            {"requests", tier.requests},
            {"completed", tier.completed},
            {"rejected", tier.rejected},
            {"good_share", share(tier.good, tier.requests)},
            {"hit_share", tier.hit_share()},
            {"ttft_ms", to_object(percentiles(tier.ttft_ms))},
            {"tbt_ms", to_object(percentiles(tier.gaps))}};
}

json::object sources_json(const TierResults& tier) {
    json::object shares;
    for (std::size_t source = 0; source < kCacheSources; ++source) {
        const auto each = static_cast<CacheSource>(source);
        shares[to_string(each)] = tier.hit_share(each);
    }
    return shares;
}

/// Empty where the pools are all there is.
std::string sources_text(const TierResults& tier) {
    std::string text;
    for (std::size_t source = 0; source < kCacheSources; ++source) {
        const auto each = static_cast<CacheSource>(source);
        text += fmt::format("{}{} {:.1f} %", text.empty() ? " (" : ", ", to_string(each),
                            100 * tier.hit_share(each));
    }
    const bool more = tier.cached.sum() > tier.cached.from(CacheSource::kPool);
    return more ? text + ")" : std::string();
}

json::object nodes_json(const NodeResults& nodes) {
    return {{"nodes", nodes.nodes},
            {"blocks", nodes.blocks},
            {"evictions", nodes.evictions},
            {"imbalance", nodes.imbalance}};
}

std::string cell(const std::optional<double>& value) {
    return value ? fmt::format("{:.1f}", *value) : std::string("-");
}

std::string tier_line(std::string_view name, const TierResults& tier) {
    const Percentiles ttft = percentiles(tier.ttft_ms);
    const Percentiles tbt = percentiles(tier.gaps);
    return fmt::format("{:<10}{:>9}{:>9.1f} %{:>7.1f} %{:>6.1f} %{:>11}{:>11}{:>11}{:>9}{:>9}\n",
                       name, tier.requests, 100 * share(tier.rejected, tier.requests),
                       100 * share(tier.good, tier.requests), 100 * tier.hit_share(),
                       cell(ttft.p50), cell(ttft.p90), cell(ttft.p99), cell(tbt.p50),
                       cell(tbt.p99));
}

json::array tiers_json(const Results& results) {
    json::array tiers;
    for (int tier = 0; tier < kLengthBuckets; ++tier) {
        tiers.push_back(tier_json(to_string(static_cast<LengthBucket>(tier)),
                                  results.tiers[static_cast<std::size_t>(tier)]));
    }
    return tiers;
}

json::array workers_json(const Results& results) {
    json::array workers;
    for (const WorkerResults& worker : results.workers) {
        workers.push_back({{"prefill_tokens", worker.prefill_tokens},
                           {"decode_tokens", worker.decode_tokens},
                           {"steps", worker.steps},
                           {"computing_s", seconds(worker.computing)},
                           {"preemptions", worker.preemptions},
                           {"evictions", worker.evictions},
                           {"crashes", worker.crashes}});
    }
    return workers;
}

}  // namespace

std::string to_text(const RunTitle& title, const Results& results) {
    std::string text = fmt::format(
        "{}: {} requests at {:g} times their speed on {} workers, policy {}, seed {}\n",
        title.trace, results.all.requests, title.speed, title.workers, title.policy, title.seed);
    text += fmt::format(
        "{} completed, {} rejected, {} ended otherwise in {:.1f} s; {} retries, {} resumes\n",
        results.all.completed, results.all.rejected,
        results.all.requests - results.all.completed - results.all.rejected,
        seconds(results.elapsed), results.retries, results.resumes);
    text += fmt::format(
        "goodput {:.3f} requests/s (TTFT <= {:g} s, TBT p99 <= {:g} ms); cached {:.1f} % of prompt "
        "tokens{}; imbalance {:.3f}\n\n",
        results.goodput_rps(), seconds(results.objectives.ttft),
        milliseconds(results.objectives.tbt), 100 * results.all.hit_share(),
        sources_text(results.all), results.imbalance());
    text += fmt::format("{:<10}{:>9}{:>11}{:>9}{:>8}{:>11}{:>11}{:>11}{:>9}{:>9}\n", "prompt",
                        "requests", "rejected", "good", "cached", "TTFT p50", "p90", "p99 ms",
                        "TBT p50", "p99 ms");
    text += tier_line("all", results.all);
    for (int tier = 0; tier < kLengthBuckets; ++tier) {
        const TierResults& each = results.tiers[static_cast<std::size_t>(tier)];
        if (each.requests > 0) text += tier_line(to_string(static_cast<LengthBucket>(tier)), each);
    }
    if (results.outcomes.size() > 1 || !results.outcomes.contains("ok")) {
        text += "\n";
        for (const auto& [name, count] : results.outcomes)
            text += fmt::format("{:>8} {}\n", count, name);
    }
    if (results.left_over > 0)
        text +=
            fmt::format("\n{} leases, places or blocks were never given back\n", results.left_over);
    return text;
}

std::string to_json(const RunTitle& title, const Results& results) {
    json::object outcomes;
    for (const auto& [name, count] : results.outcomes) outcomes[name] = count;
    const json::object object{{"trace", title.trace},
                              {"workers", title.workers},
                              {"policy", title.policy},
                              {"seed", title.seed},
                              {"speed", title.speed},
                              {"requests", results.all.requests},
                              {"completed", results.all.completed},
                              {"rejected", results.all.rejected},
                              {"rejected_share", results.rejected_share()},
                              {"hit_share", results.all.hit_share()},
                              {"hit_share_by_source", sources_json(results.all)},
                              {"imbalance", results.imbalance()},
                              {"ttft_ms", to_object(percentiles(results.all.ttft_ms))},
                              {"tbt_ms", to_object(percentiles(results.all.gaps))},
                              {"goodput_rps", results.goodput_rps()},
                              {"good_share", share(results.all.good, results.all.requests)},
                              {"slo_ttft_ms", milliseconds(results.objectives.ttft)},
                              {"slo_tbt_ms", milliseconds(results.objectives.tbt)},
                              {"elapsed_s", seconds(results.elapsed)},
                              {"outcomes", std::move(outcomes)},
                              {"retries", results.retries},
                              {"resumes", results.resumes},
                              {"fallbacks", results.fallbacks},
                              {"left_over", results.left_over},
                              {"kv_nodes", nodes_json(results.nodes)},
                              {"by_tier", tiers_json(results)},
                              {"by_worker", workers_json(results)}};
    return json::serialize(object);
}

}  // namespace sluice::sim
