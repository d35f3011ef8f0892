#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "gates/failure_mode.h"

namespace sluice::gates {
namespace {

constexpr std::string_view kBySplit =
    "by itself: the guard latches, and its conversations go back to the stable pool; `sluice ctl "
    "rollback` does it by hand";
constexpr std::string_view kByShadow =
    "nothing to undo: nobody got its answers; the guard latches, and the copies end";

/// The first guard of the pool whose metric begins with `prefix`.
const GuardConfig* guard_of(const ServiceConfig& config, const PoolConfig& pool,
                            std::string_view prefix) {
    const auto& guards = config.plan.guards;
    const auto found = std::ranges::find_if(guards, [&](const GuardConfig& guard) {
        return *guard.pool == *pool.name && guard.metric->starts_with(prefix);
    });
    return found == guards.end() ? nullptr : &*found;
}

FailureMode of_candidate(Failure failure, const PoolConfig& pool, const PoolRole& role) {
    FailureMode mode{.failure = failure, .subject = *pool.name};
    mode.place = pool.name.place;
    mode.rollback = role.split != nullptr ? kBySplit : kByShadow;
    return mode;
}

std::string described(const GuardConfig& guard) {
    return fmt::format("the guard on {} over {}", *guard.metric, format_duration(*guard.window));
}

FailureMode guarded(Failure failure, const ServiceConfig& config, const PoolConfig& pool,
                    std::string_view metric) {
    FailureMode mode = of_candidate(failure, pool, role_of(config, pool));
    if (const GuardConfig* const guard = guard_of(config, pool, metric)) {
        mode.caught_by = described(*guard);
        mode.place = guard->metric.place;
    } else {
        mode.advice = fmt::format("add a [[plan.guard]] with metric = \"{}\"", metric);
    }
    return mode;
}

/// Late at the start and late in between are two things.
FailureMode candidate_slow(const ServiceConfig& config, const PoolConfig& pool) {
    FailureMode mode = of_candidate(Failure::kCandidateSlow, pool, role_of(config, pool));
    const GuardConfig* const first = guard_of(config, pool, "ttft_");
    const GuardConfig* const between = guard_of(config, pool, "tbt_");
    if (first != nullptr && between != nullptr) {
        mode.caught_by = fmt::format("{}, {}", described(*first), described(*between));
        mode.place = first->metric.place;
    } else {
        mode.advice = fmt::format("add a [[plan.guard]] with metric = \"{}\"",
                                  first == nullptr ? "ttft_p95" : "tbt_p99");
    }
    return mode;
}

FailureMode candidate_answers_differ(const ServiceConfig& config, const PoolConfig& pool) {
    FailureMode mode = guarded(Failure::kCandidateAnswersDiffer, config, pool, "differs_share");
    if (role_of(config, pool).shadow != nullptr) return mode;
    mode.caught_by.clear();
    mode.advice =
        "add a [[plan.shadow]], which compares, and a [[plan.guard]] with metric = "
        "\"differs_share\"";
    return mode;
}

FailureMode blind_split(const PoolConfig& pool, const PoolRole& role) {
    FailureMode mode = of_candidate(Failure::kBlindSplit, pool, role);
    if (role.shadow != nullptr) {
        mode.caught_by =
            fmt::format("the shadow of {} of the conversations", role.shadow->share->value_or(0.0));
        mode.place = role.shadow->share.place;
    } else {
        mode.place = role.split->pool.place;
        mode.advice = "add a [[plan.shadow]] before the split, and read `sluice card`";
    }
    return mode;
}

FailureMode split_forgotten(const PoolConfig& pool, const PoolRole& role) {
    FailureMode mode = of_candidate(Failure::kSplitForgotten, pool, role);
    mode.place = role.split->lease.place;
    mode.rollback = "by itself: all traffic goes to the stable pool when the lease ends";
    if (const auto lease = *role.split->lease) {
        mode.caught_by = fmt::format("lease = {}", format_duration(*lease));
    } else {
        mode.advice = "set lease";
    }
    return mode;
}

FailureMode no_room_to_roll_back(const ServiceConfig& config) {
    const auto stable = std::ranges::find_if(
        config.pools, [&](const PoolConfig& pool) { return role_of(config, pool).answers; });
    FailureMode mode{.failure = Failure::kNoRoomToRollBack, .subject = *stable->name};
    mode.rollback =
        "requests beyond the room wait, and are refused at once when that would be too long";
    if (stable->is_native()) {
        mode.place = !stable->native.urls->empty() ? stable->native.urls.place
                     : stable->native.is_split()   ? stable->native.prefill.place
                                                   : stable->native.workers.place;
        mode.caught_by = "the check of every plan: the places of its workers are known";
    } else if (*stable->upstream.max_concurrency > 0) {
        mode.place = stable->upstream.max_concurrency.place;
        mode.caught_by = fmt::format("the check of every plan: max_concurrency = {}",
                                     *stable->upstream.max_concurrency);
    } else {
        mode.place = stable->upstream.max_concurrency.place;
        mode.advice =
            "set max_concurrency: its room is unknown, so no plan can be checked against it";
    }
    return mode;
}

}  // namespace

void add_candidate_failures(const ServiceConfig& config, const PoolConfig& pool,
                            std::vector<FailureMode>& modes) {
    const PoolRole role = role_of(config, pool);
    modes.push_back(guarded(Failure::kCandidateErrors, config, pool, "error_rate"));
    modes.push_back(candidate_slow(config, pool));
    modes.push_back(guarded(Failure::kCandidateInvalidOutput, config, pool, "invalid_output_rate"));
    modes.push_back(candidate_answers_differ(config, pool));
    if (role.split == nullptr) return;
    modes.push_back(blind_split(pool, role));
    modes.push_back(split_forgotten(pool, role));
    modes.push_back(no_room_to_roll_back(config));
}

}  // namespace sluice::gates
