#include "gateway/record_keeper.h"

#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "gateway/record_row.h"
#include "port/json_writer.h"
#include "record/version_manifest.h"

namespace sluice::gateway {
namespace {

double ms(std::chrono::nanoseconds duration) {
    return static_cast<double>(
               std::chrono::duration_cast<std::chrono::microseconds>(duration).count()) /
           1000.0;
}

std::string_view path_of(Endpoint endpoint) {
    return endpoint == Endpoint::kChat ? "/v1/chat/completions" : "/v1/completions";
}

}  // namespace

std::string access_line(const RequestReport& report) {
    std::string text;
    port::JsonWriter writer(text);
    writer.begin_object();
    writer.field("request_id", report.request_id);
    writer.field("rid", report.rid);
    writer.field("path", path_of(report.endpoint));
    writer.field("status", report.status);
    writer.field("outcome", to_string(report.outcome));
    if (!report.error_code.empty()) writer.field("error", report.error_code);
    writer.field("tenant", report.tenant);
    writer.field("pool", report.pool);
    writer.field("model", report.model);
    writer.field("stream", report.stream);
    writer.field("prompt_tokens", report.prompt_tokens);
    writer.field("cached_tokens", report.cached_tokens);
    writer.field("completion_tokens", report.completion_tokens);
    writer.field("queued_ms", ms(report.queued));
    if (report.ttft) writer.field("ttft_ms", ms(*report.ttft));
    writer.field("duration_ms", ms(report.duration));
    writer.field("resumes", report.resumes);
    writer.field("retries", report.retries);
    writer.field("trace_id", report.trace.trace_id);
    writer.end_object();
    return text;
}

void RecordKeeper::on_done(const Generation& /*generation*/, const RequestReport& report) {
    on_refused(report);
}

void RecordKeeper::on_refused(const RequestReport& report) {
    const bool answer = report.role == RequestRole::kAnswer;
    if (options_.access_log && answer) log::access(access_line(report));
    if (options_.traces) options_.traces->add(report);
    if (answer || !options_.copies_are_compared) add(report);
}

std::string RecordKeeper::fingerprint_of(const std::shared_ptr<const port::ServerInfo>& worker) {
    if (const auto known = fingerprints_.find(worker); known != fingerprints_.end())
        return known->second;
    const record::VersionManifest manifest = record::make_manifest(*worker);
    std::string fingerprint = record::digest(manifest);
    options_.store->remember(fingerprint, manifest);
    if (fingerprints_.size() == limits::kRecordManifests) fingerprints_.clear();
    fingerprints_.emplace(worker, fingerprint);
    return fingerprint;
}

void RecordKeeper::add(const RequestReport& report, std::optional<record::Comparison> comparison) {
    if (!options_.store) return;
    record::RequestRow row =
        row_of(report, [this](const auto& worker) { return fingerprint_of(worker); });
    row.comparison = std::move(comparison);
    options_.store->add(std::move(row));
}

}  // namespace sluice::gateway
