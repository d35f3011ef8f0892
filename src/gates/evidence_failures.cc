#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "gates/failure_mode.h"

namespace sluice::gates {
namespace {

FailureMode of_service(Failure failure, const std::string& place = {}) {
    FailureMode mode{.failure = failure, .subject = std::string(kWholeService)};
    mode.place = place;
    return mode;
}

FailureMode nothing_recorded(const RecordConfig& record) {
    FailureMode mode = of_service(Failure::kNothingRecorded, record.path.place);
    mode.rollback =
        "nothing to undo: failures are never dropped, successes stand for others under pressure";
    if (const auto& path = *record.path) {
        mode.caught_by = fmt::format("records in {}", *path);
    } else {
        mode.caught_by = "records in the state folder of `sluice up`";
        mode.advice = "`sluice gateway` alone keeps none: there, set [record] path";
    }
    return mode;
}

FailureMode record_disk_full(const RecordConfig& record, const ServiceFacts& facts) {
    FailureMode mode = of_service(Failure::kRecordDiskFull, record.retention_bytes.place);
    const std::uint64_t most = *record.retention_bytes;
    mode.rollback = "make room: what waits is written then; failures wait in failures.journal";
    const auto room = facts.record_room_bytes;
    if (room && *room < most) {
        mode.advice = fmt::format(
            "records may grow to {}, but their disk has {} MiB for them: lower retention_bytes, or "
            "give them a larger one",
            format_bytes(most), *room >> 20U);
    } else {
        mode.caught_by = fmt::format("retention_bytes = {}", format_bytes(most));
    }
    return mode;
}

/// The longest time for which the plan may want to know what was.
std::chrono::milliseconds looked_back(const PlanConfig& plan) {
    std::chrono::milliseconds longest = std::chrono::hours(24);
    for (const SplitConfig& split : plan.splits)
        longest = std::max(longest, split.lease->value_or(longest));
    for (const GuardConfig& guard : plan.guards) longest = std::max(longest, *guard.window);
    return longest;
}

FailureMode evidence_gone(const ServiceConfig& config) {
    const auto& age = config.record.retention_age;
    FailureMode mode = of_service(Failure::kEvidenceGone, age.place);
    mode.rollback = "nothing brings deleted records back; `sluice ctl records` exports them before";
    const auto needed = looked_back(config.plan);
    if (*age >= needed) {
        mode.caught_by = fmt::format("retention_age = {}", format_duration(*age));
    } else {
        mode.advice =
            fmt::format("set retention_age to {} or more: leases and guards look back as far",
                        format_duration(needed));
    }
    return mode;
}

FailureMode stable_degrades() {
    FailureMode mode = of_service(Failure::kStableDegrades);
    mode.advice =
        "guards only watch candidates: name the alert on sluice_requests_total{outcome}, "
        "sluice_ttft_seconds and sluice_queue_depth, and what is done when it fires";
    return mode;
}

FailureMode gateway_crashes() {
    FailureMode mode = of_service(Failure::kGatewayCrashes);
    mode.caught_by = "the supervisor of `sluice up`, which starts it again on its port";
    mode.rollback = "by itself; open streams break, and clients ask again";
    mode.advice = "`sluice gateway` alone needs a service manager that restarts it";
    return mode;
}

FailureMode machine_lost() {
    FailureMode mode = of_service(Failure::kMachineLost);
    mode.advice =
        "say what notices it, and what takes over: a second gateway behind an address that moves, "
        "or how long the service may be away";
    return mode;
}

}  // namespace

void add_evidence_failures(const ServiceConfig& config, const ServiceFacts& facts,
                           std::vector<FailureMode>& modes) {
    modes.push_back(nothing_recorded(config.record));
    modes.push_back(record_disk_full(config.record, facts));
    modes.push_back(evidence_gone(config));
    modes.push_back(stable_degrades());
    modes.push_back(gateway_crashes());
    modes.push_back(machine_lost());
}

}  // namespace sluice::gates
