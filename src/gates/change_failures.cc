#include <fmt/format.h>

#include <algorithm>

#include "gates/failure_mode.h"

namespace sluice::gates {
namespace {

FailureMode of_service(Failure failure) {
    return {.failure = failure, .subject = std::string(kWholeService)};
}

const PoolConfig* candidate_of(const ServiceConfig& config) {
    const auto found = std::ranges::find_if(config.pools, [&](const PoolConfig& pool) {
        const PoolRole role = role_of(config, pool);
        return role.used() && !role.answers;
    });
    return found == config.pools.end() ? nullptr : &*found;
}

FailureMode bad_rollout(const ServiceConfig& config) {
    FailureMode mode = of_service(Failure::kBadRollout);
    mode.place = config.plan.stable.place;
    if (const PoolConfig* const candidate = candidate_of(config)) {
        mode.place = candidate->name.place;
        mode.caught_by = fmt::format("the plan, which tries pool {} first", *candidate->name);
        mode.rollback = "`sluice ctl rollback`: a latch that only `ctl plan rearm` opens";
    } else {
        mode.advice =
            "add a second pool with the new build and a [[plan.shadow]] of it; else say what tests "
            "a build, and which build to go back to";
    }
    return mode;
}

/// Only matters where a guard looks at differences.
void add_noise(const ServiceConfig& config, std::vector<FailureMode>& modes) {
    const PlanConfig& plan = config.plan;
    const auto differs = std::ranges::find_if(
        plan.guards, [](const GuardConfig& guard) { return *guard.metric == "differs_share"; });
    if (differs == plan.guards.end()) return;
    FailureMode mode = of_service(Failure::kNoiseTakenForFault);
    mode.place = differs->metric.place;
    mode.rollback = "`sluice ctl plan rearm`, with a threshold above the noise";
    const bool measured = std::ranges::any_of(
        plan.shadows, [&](const ShadowConfig& shadow) { return *shadow.pool == *plan.stable; });
    if (measured) {
        mode.caught_by = "the [[plan.shadow]] of the stable pool itself, which measures the noise";
    } else {
        mode.advice = fmt::format(
            "add a [[plan.shadow]] of {} itself: how often it differs from itself is the measure",
            *plan.stable);
    }
    modes.push_back(std::move(mode));
}

FailureMode rolled_back_comes_back() {
    FailureMode mode = of_service(Failure::kRolledBackComesBack);
    mode.caught_by = "the latch, which is written down before it is acknowledged";
    mode.rollback = "by itself: the plan stays latched until `sluice ctl plan rearm`";
    return mode;
}

FailureMode bad_configuration() {
    FailureMode mode = of_service(Failure::kBadConfiguration);
    mode.caught_by = "`sluice config check`, and the start, which refuse it by its line";
    mode.rollback = "start with the file before it, which belongs in version control";
    return mode;
}

FailureMode sluice_upgrade() {
    FailureMode mode = of_service(Failure::kSluiceUpgrade);
    mode.advice =
        "say which test a new version passes before it serves, where the old program is kept, and "
        "where a copy of the records: an older version refuses a newer file";
    return mode;
}

}  // namespace

void add_change_failures(const ServiceConfig& config, std::vector<FailureMode>& modes) {
    modes.push_back(bad_rollout(config));
    add_noise(config, modes);
    if (candidate_of(config) != nullptr) modes.push_back(rolled_back_comes_back());
    modes.push_back(bad_configuration());
    modes.push_back(sluice_upgrade());
}

}  // namespace sluice::gates
