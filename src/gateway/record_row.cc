#include "gateway/record_row.h"

#include <utility>

namespace sluice::gateway {
namespace {

std::chrono::microseconds us(std::chrono::nanoseconds duration) {
    return std::chrono::duration_cast<std::chrono::microseconds>(duration);
}

record::Leg leg_of(const LegReport& leg, FingerprintOf fingerprint_of) {
    return {.phase = leg.phase,
            .pool = leg.pool,
            .worker = leg.worker,
            .fingerprint = leg.versions ? fingerprint_of(leg.versions) : std::string(),
            .held = us(leg.ended - leg.began)};
}

}  // namespace

record::Comparison comparison_of(const traffic::Comparison& comparison, std::string pool) {
    record::Comparison row{.pool = std::move(pool),
                           .differences = comparison.differences,
                           .first_difference = comparison.first_difference,
                           .logprob_delta = comparison.logprob_delta};
    if (comparison.ttft_delta) row.ttft_delta = us(*comparison.ttft_delta);
    if (comparison.tbt_delta) row.tbt_delta = us(*comparison.tbt_delta);
    return row;
}

record::RequestRow row_of(const RequestReport& report, FingerprintOf fingerprint_of) {
    record::RequestRow row{.rid = report.rid,
                           .request_id = report.request_id,
                           .time_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                          report.time.time_since_epoch())
                                          .count(),
                           .tenant = report.tenant,
                           .pool = report.pool,
                           .role = report.role,
                           .kind = report.kind,
                           .prompt_tokens = report.prompt_tokens,
                           .cached_tokens = report.cached_tokens,
                           .cached_by_source = report.cached_by_source,
                           .kv_decision = report.kv_decision,
                           .completion_tokens = report.completion_tokens,
                           .gaps = report.tbt,
                           .duration = us(report.duration),
                           .outcome = report.outcome,
                           .error = report.error_code,
                           .resumes = report.resumes,
                           .retries = report.retries,
                           .recomputed_tokens = report.recomputed_tokens,
                           .recompute_cause = report.recompute_cause,
                           .schema_digest = report.schema_digest,
                           .fingerprint = report.system_fingerprint,
                           .trace_id = report.trace.trace_id};
    if (report.ttft) row.ttft = us(*report.ttft);
    row.legs.reserve(report.legs.size());
    for (const LegReport& leg : report.legs) row.legs.push_back(leg_of(leg, fingerprint_of));
    if (!report.legs.empty() && report.legs.back().versions)
        row.device_memory_bytes = report.legs.back().versions->device_memory_bytes;
    return row;
}

}  // namespace sluice::gateway
