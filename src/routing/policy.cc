#include "routing/policy.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::routing {
namespace {

/// What a prompt has to compute itself counts as often: computing what another worker holds makes
/// those wait, too, that come after it, and takes room in one more cache. Without it, on the Mooncake
/// conversations at 8 workers, 31.6 % of the prompts' tokens are found in caches, with it 33.7 %, and
/// no percentile of the time to the first token is worse (docs/simulator.md).
constexpr double kOwnWork = 2.0;
/// So many requests that decode beside it make a prefill take twice as long.
constexpr double kDecodesThatDouble = 64.0;
/// From this share of its pool on an engine comes near giving blocks up again.
constexpr double kFullFrom = 0.8;
constexpr double kFullFactor = 10.0;
/// What an engine of unknown capacity is compared by.
constexpr double kUsualCapacity = 64.0;
constexpr double kUsualKvTokens = 1024.0 * 1024.0;

constexpr std::array kNames{
    std::pair{Policy::kDefault, std::string_view("default")},
    std::pair{Policy::kRoundRobin, std::string_view("round_robin")},
    std::pair{Policy::kLeastLoaded, std::string_view("least_loaded")},
    std::pair{Policy::kOverlap, std::string_view("overlap")},
};

/// Seconds.
struct LoadTime {
    double own = 0.0;        ///< Of what the worker holds itself.
    double elsewhere = 0.0;  ///< Of what only others hold.
    [[nodiscard]] double sum() const { return own + elsewhere; }
};

double kv_share(const Candidate& worker, std::uint64_t more) {
    const double capacity =
        worker.costs->kv_tokens > 0 ? static_cast<double>(worker.costs->kv_tokens) : kUsualKvTokens;
    return static_cast<double>(worker.load.kv_tokens + more) / capacity;
}

double prefill_value(const Demand& demand, const Candidate& worker, const Score& score,
                     const LoadTime& load) {
    // A new worker's load weighs more; that it is idle counts. Nothing is free.
    const double wait = static_cast<double>(worker.load.prefill_work) * worker.seconds_per_work;
    // Nobody waits behind what is brought from elsewhere: the engine computes meanwhile.
    double value = kOwnWork * (score.ttft - wait - load.elsewhere) + load.elsewhere +
                   wait / worker.ramp + worker.seconds_per_work;
    if (demand.phase == LegPhase::kFull) value *= 1.0 + worker.load.requests / kDecodesThatDouble;
    if (worker.costs->kv_tokens > 0) {
        const double over = kv_share(worker, score.load.kv_tokens) - kFullFrom;
        value *= 1.0 + kFullFactor * std::max(0.0, over);
    }
    return value / worker.pressure;
}

double decode_value(const Candidate& worker, const Score& score) {
    const double capacity = worker.capacity > 0 ? worker.capacity : kUsualCapacity;
    const double requests = (worker.load.requests / worker.ramp + 1.0) / capacity;
    const double kv = kv_share(worker, score.load.kv_tokens);
    // The lesser of the two decides between equals; what is there already need not be pulled.
    const double missing = 1.0 - static_cast<double>(worker.matched_tokens) /
                                     static_cast<double>(score.load.kv_tokens + 1);
    return (std::max(requests, kv) + 0.01 * std::min(requests, kv) + 0.001 * missing) /
           worker.pressure;
}

double requests_value(const Candidate& worker) {
    // One more request than now, so that backpressure shows on an idle worker, too.
    return (worker.load.requests / worker.ramp + 1.0) / worker.pressure +
           1e-12 * static_cast<double>(worker.load.prefill_tokens);
}

double default_value(const Demand& demand, const Candidate& worker, const Score& score,
                     const LoadTime& load) {
    switch (demand.phase) {
        case LegPhase::kFull:
        case LegPhase::kPrefill: return prefill_value(demand, worker, score, load);
        case LegPhase::kDecode: return decode_value(worker, score);
        case LegPhase::kEncode:
            return (static_cast<double>(worker.load.image_tokens) / worker.ramp +
                    static_cast<double>(demand.image_tokens + 1)) /
                   worker.pressure;
    }
    return 0.0;
}

/// Of the prompt, what need not be computed if it is brought in.
std::uint64_t reachable_tokens(const Demand& demand, const Candidate& worker) {
    return std::min(std::max(worker.matched_tokens, worker.elsewhere_tokens), demand.tokens);
}

/// To bring the cached part in, or to compute it after all, whichever is sooner.
LoadTime load_time(const Demand& demand, const Candidate& worker, const Score& score) {
    const Costs& costs = *worker.costs;
    const std::uint64_t loaded = demand.tokens - score.load.prefill_tokens;
    const std::uint64_t elsewhere = std::min(
        loaded, reachable_tokens(demand, worker) - std::min(worker.matched_tokens, demand.tokens));
    LoadTime time{.own = costs.load_seconds_per_token * static_cast<double>(loaded - elsewhere),
                  .elsewhere = worker.elsewhere_seconds_per_token * static_cast<double>(elsewhere)};
    if (time.sum() <= 0.0) return {};
    const double saved =
        worker.seconds_per_work * (prefill_work(costs, demand.tokens, demand.tokens) -
                                   static_cast<double>(score.load.prefill_work));
    if (time.sum() > saved) time = {.own = saved, .elsewhere = 0.0};
    return time;
}

Load added_load(const Demand& demand, const Candidate& worker) {
    Load load{.requests = 1};
    if (demand.phase == LegPhase::kEncode) {
        load.image_tokens = demand.image_tokens;
        return load;
    }
    load.kv_tokens = demand.tokens;
    if (demand.phase == LegPhase::kDecode) return load;
    load.prefill_tokens =
        tokens_to_compute(*worker.costs, reachable_tokens(demand, worker), demand.tokens);
    load.prefill_work =
        static_cast<std::uint64_t>(prefill_work(*worker.costs, load.prefill_tokens, demand.tokens));
    return load;
}

}  // namespace

std::string_view to_string(Policy policy) {
    const auto found =
        std::ranges::find(kNames, policy, &std::pair<Policy, std::string_view>::first);
    return found == kNames.end() ? "default" : found->second;
}

std::optional<Policy> parse_policy(std::string_view name) {
    const auto found =
        std::ranges::find(kNames, name, &std::pair<Policy, std::string_view>::second);
    if (found == kNames.end()) return std::nullopt;
    return found->first;
}

Score judge(Policy policy, const Demand& demand, const Candidate& worker) {
    Score score;
    score.load = added_load(demand, worker);
    score.work = static_cast<double>(worker.load.prefill_work + score.load.prefill_work);
    const LoadTime load = load_time(demand, worker, score);
    score.ttft = score.work * worker.seconds_per_work + load.sum();
    switch (policy) {
        case Policy::kDefault: score.value = default_value(demand, worker, score, load); break;
        case Policy::kRoundRobin: score.value = 0.0; break;
        case Policy::kLeastLoaded: score.value = requests_value(worker); break;
        case Policy::kOverlap: score.value = -static_cast<double>(worker.matched_tokens); break;
    }
    return score;
}

}  // namespace sluice::routing
