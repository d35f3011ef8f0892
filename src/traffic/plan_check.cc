#include "traffic/plan_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/config.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/units.h"

namespace sluice::traffic {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLeaseMin{1'000};
constexpr milliseconds kLeaseMax = std::chrono::seconds(limits::kPlanLeaseSeconds);
constexpr milliseconds kWindowMin{1'000};
constexpr milliseconds kWindowMax = std::chrono::seconds(limits::kGuardWindowSeconds);

/// Notes mistakes and turns rows of the file into rows of the plan.
class PlanCheck {
public:
    PlanCheck(const PlanConfig& config, std::span<const std::string> pools)
        : config_(config), pools_(pools.begin(), pools.end()) {}

    std::expected<Plan, Errors> run() {
        take_stable();
        plan_.salt = *config_.salt;
        for (const SplitConfig& split : config_.splits) take(split);
        for (const ShadowConfig& shadow : config_.shadows) take(shadow);
        for (const GuardConfig& guard : config_.guards) take(guard);
        if (!errors_.empty()) return std::unexpected(std::move(errors_));
        return std::move(plan_);
    }

private:
    void note(const std::string& place, std::string message) {
        if (errors_.size() < limits::kConfigErrors)
            errors_.push_back(Error::invalid(std::move(message), place));
    }

    void check_pool(std::string_view key, const Setting<std::string>& pool) {
        if (std::ranges::find(pools_, *pool) != pools_.end()) return;
        note(pool.place,
             fmt::format("{} names no pool: '{}'{}", key, *pool, did_you_mean(*pool, pools_)));
    }

    void take_stable() {
        plan_.stable = *config_.stable;
        if (plan_.stable.empty() && pools_.size() == 1) plan_.stable = pools_.front();
        if (!plan_.stable.empty()) {
            if (!config_.stable->empty()) check_pool("plan.stable", config_.stable);
            return;
        }
        note(config_.stable.place == "default" ? "plan" : config_.stable.place,
             "plan.stable must name the pool that answers");
    }

    void take_share(std::string_view key, const Setting<std::optional<double>>& share,
                    double& out) {
        if (!*share) return note(share.place, fmt::format("{} must be given", key));
        out = **share;
        if (out > 0.0 && out <= 1.0) return;
        note(share.place, fmt::format("{} is {}, but must be above 0 and at most 1", key, out));
    }

    void take(const SplitConfig& config) {
        Split split{.pool = *config.pool};
        check_pool("plan.split.pool", config.pool);
        if (split.pool == plan_.stable)
            note(config.pool.place,
                 "plan.split.pool is the stable pool, which gets the rest anyway");
        if (plan_.splits_to(split.pool))
            note(config.pool.place, fmt::format("plan.split has '{}' twice", split.pool));
        take_share("plan.split.weight", config.weight, split.weight);
        check_lease(config.lease, split.lease);
        total_ += split.weight;
        // Shares as they are written add up to 1 only almost: 0.1 + 0.2 + 0.7.
        constexpr double kRounding = 1e-9;
        if (total_ > 1.0 + kRounding)
            note(config.weight.place,
                 fmt::format("the weights up to here are {} together, but 1 is all there is",
                             total_));
        plan_.splits.push_back(std::move(split));
    }

    void check_lease(const Setting<std::optional<milliseconds>>& lease, milliseconds& out) {
        if (!*lease)
            return note(lease.place,
                        "plan.split.lease must be given: how long the weight holds "
                        "unless the plan is applied again");
        out = **lease;
        if (out >= kLeaseMin && out <= kLeaseMax) return;
        note(lease.place,
             fmt::format("plan.split.lease is {}, but must be from {} to {}", format_duration(out),
                         format_duration(kLeaseMin), format_duration(kLeaseMax)));
    }

    void take(const ShadowConfig& config) {
        Shadow shadow{.pool = *config.pool,
                      .max_concurrent = static_cast<std::uint32_t>(*config.max_concurrent)};
        check_pool("plan.shadow.pool", config.pool);
        if (plan_.shadows_to(shadow.pool))
            note(config.pool.place, fmt::format("plan.shadow has '{}' twice", shadow.pool));
        take_share("plan.shadow.share", config.share, shadow.share);
        plan_.shadows.push_back(std::move(shadow));
    }

    void take(const GuardConfig& config) {
        Guard guard{.pool = *config.pool,
                    .max = *config.max,
                    .max_ratio = *config.max_ratio,
                    .min_samples = static_cast<std::uint32_t>(*config.min_samples),
                    .window = *config.window};
        check_pool("plan.guard.pool", config.pool);
        if (const auto metric = parse_guard_metric(*config.metric)) {
            guard.metric = *metric;
            check_limit(config, guard);
            check_measured(config, guard);
        } else {
            note(config.metric.place,
                 fmt::format("plan.guard.metric is no metric: '{}'{}", *config.metric,
                             did_you_mean(*config.metric, guard_metric_names())));
        }
        if (*config.min_samples == 0)
            note(config.min_samples.place,
                 "plan.guard.min_samples must be given: how many requests of each pool a verdict "
                 "needs at least");
        if (guard.window < kWindowMin || guard.window > kWindowMax)
            note(config.window.place,
                 fmt::format("plan.guard.window is {}, but must be from {} to {}",
                             format_duration(guard.window), format_duration(kWindowMin),
                             format_duration(kWindowMax)));
        plan_.guards.push_back(std::move(guard));
    }

    void check_limit(const GuardConfig& config, const Guard& guard) {
        if (guard.max.has_value() == guard.max_ratio.has_value())
            return note(config.max.place,
                        "plan.guard needs one limit: max, or max_ratio to stable");
        if (guard.max_ratio && *guard.max_ratio < 1.0)
            note(config.max_ratio.place,
                 fmt::format("plan.guard.max_ratio is {}: it must be 1 or more, because two equal "
                             "pools have the ratio 1",
                             *guard.max_ratio));
        const bool is_share = !quantile_of(guard.metric);
        if (guard.max && is_share && *guard.max >= 1.0)
            note(config.max.place,
                 fmt::format("plan.guard.max is {}, but a share that is to be noticed is below 1",
                             *guard.max));
        if (guard.max && !is_share && *guard.max <= 0.0)
            note(config.max.place, "plan.guard.max is in seconds and must be above 0");
    }

    /// A guard over what is never measured would look like safety.
    void check_measured(const GuardConfig& config, const Guard& guard) {
        if (guard.pool == plan_.stable)
            return note(config.pool.place,
                        "plan.guard.pool is the stable pool: there is nothing to roll back to");
        if (!plan_.splits_to(guard.pool) && !plan_.shadows_to(guard.pool))
            return note(
                config.pool.place,
                fmt::format("plan.guard.pool '{}' gets no traffic by this plan", guard.pool));
        if (guard.metric != GuardMetric::kDiffersShare) return;
        if (!plan_.shadows_to(guard.pool))
            note(config.metric.place,
                 fmt::format("differs_share needs a [[plan.shadow]] of '{}'", guard.pool));
        if (guard.max_ratio && !plan_.shadows_to(plan_.stable))
            note(config.max_ratio.place,
                 fmt::format("differs_share by max_ratio needs a [[plan.shadow]] of '{}' itself, "
                             "whose copies measure the noise",
                             plan_.stable));
    }

    const PlanConfig& config_;
    std::vector<std::string_view> pools_;
    Plan plan_;
    Errors errors_;
    double total_ = 0.0;
};

}  // namespace

std::expected<Plan, Errors> check_plan(const PlanConfig& config,
                                       std::span<const std::string> pools) {
    return PlanCheck(config, pools).run();
}

std::expected<Plan, Errors> read_plan(std::string_view text, std::string name,
                                      std::span<const std::string> pools) {
    const auto document = config::Document::parse(text, std::move(name));
    if (!document) return std::unexpected(Errors{document.error()});
    config::Table root = document->root();
    if (!root.has("plan"))
        return std::unexpected(Errors{Error::invalid("holds no table [plan]", root.place())});
    const PlanConfig config = read_plan_config(root.table("plan"));
    if (Errors errors = document->errors(); !errors.empty())
        return std::unexpected(std::move(errors));
    return check_plan(config, pools);
}

RollbackCapacity rollback_capacity(const Plan& plan, std::span<const PoolFacts> pools) {
    RollbackCapacity capacity;
    for (const PoolFacts& pool : pools) {
        capacity.needed += pool.running;
        if (pool.name != plan.stable) continue;
        capacity.ready = pool.ready_workers > 0;
        capacity.slots = pool.capacity;
    }
    return capacity;
}

std::optional<Error> refuse_without_headroom(const Plan& plan, std::span<const PoolFacts> pools,
                                             bool force) {
    if (plan.splits.empty()) return std::nullopt;
    const RollbackCapacity capacity = rollback_capacity(plan, pools);
    const auto refuse = [](std::string message) {
        return Error(ErrorCode::kUnavailable, std::move(message), "plan.stable");
    };
    if (!capacity.ready)
        return refuse(fmt::format("'{}' has no worker that is ready, so there would be no way back",
                                  plan.stable));
    if (!capacity.slots && !force)
        return refuse(
            fmt::format("nobody knows how many requests '{}' can hold (max_concurrency of "
                        "its pool says so); --force accepts that",
                        plan.stable));
    if (capacity.slots && !capacity.enough())
        return refuse(
            fmt::format("'{}' can hold {} requests, but {} are running: there would be no "
                        "way back",
                        plan.stable, *capacity.slots, capacity.needed));
    return std::nullopt;
}

}  // namespace sluice::traffic
