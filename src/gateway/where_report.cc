#include "gateway/where_report.h"

#include "gateway/record_row.h"
#include "port/json_writer.h"
#include "port/kv_decision_json.h"

namespace sluice::gateway {
namespace {

using port::JsonWriter;
using record::VersionManifest;

void write_versions(JsonWriter& writer, const std::string& fingerprint,
                    const VersionManifest& manifest) {
    writer.key("versions");
    writer.begin_object();
    writer.field("fingerprint", fingerprint);
    record::visit_fields(manifest, [&](std::string_view name, const std::string& value) {
        if (!value.empty()) writer.field(name, value);
    });
    writer.end_object();
}

void write_legs(JsonWriter& writer, const record::RequestRow& row,
                const std::map<std::string, VersionManifest>& manifests) {
    writer.key("legs");
    writer.begin_array();
    for (const record::Leg& leg : row.legs) {
        writer.begin_object();
        writer.field("phase", leg.phase);
        writer.field("pool", leg.pool);
        writer.field("worker", leg.worker);
        const auto manifest = manifests.find(leg.fingerprint);
        write_versions(writer, leg.fingerprint,
                       manifest == manifests.end() ? VersionManifest{} : manifest->second);
        writer.end_object();
    }
    writer.end_array();
}

void write_cache(JsonWriter& writer, const record::RequestRow& row) {
    writer.key("cache");
    writer.begin_object();
    writer.field("cached_tokens", row.cached_tokens);
    writer.key("by_source");
    writer.begin_object();
    for (const auto& [source, tokens] : row.cached_by_source) writer.field(source, tokens);
    writer.end_object();
    if (row.kv_decision) {
        writer.key("decision");
        port::write(writer, *row.kv_decision);
    }
    writer.end_object();
}

void write_copies(JsonWriter& writer, const std::vector<record::RequestRow>& copies) {
    writer.key("shadow");
    writer.begin_array();
    for (const record::RequestRow& copy : copies) {
        writer.begin_object();
        writer.field("rid", copy.rid);
        writer.field("pool", copy.pool);
        writer.field("outcome", to_string(copy.outcome));
        writer.key("differences");
        if (copy.comparison) {
            writer.begin_array();
            for (const std::string& each : copy.comparison->differences) writer.value(each);
            writer.end_array();
        } else {
            writer.null();
        }
        writer.end_object();
    }
    writer.end_array();
}

std::string write_where(const record::RequestRow& row, std::string_view state,
                        const std::vector<record::RequestRow>& copies,
                        const std::map<std::string, VersionManifest>& manifests) {
    std::string text;
    JsonWriter writer(text);
    writer.begin_object();
    writer.field("rid", row.rid);
    writer.field("request_id", row.request_id);
    writer.field("state", state);
    writer.key("outcome");
    if (state == "done") {
        writer.value(to_string(row.outcome));
    } else {
        writer.null();
    }
    writer.field("tenant", row.tenant);
    writer.field("pool", row.pool);
    writer.field("fingerprint", row.fingerprint);
    write_legs(writer, row, manifests);
    write_cache(writer, row);
    writer.field("resumes", row.resumes);
    write_copies(writer, copies);
    writer.end_object();
    return text;
}

}  // namespace

std::string where_json(const RequestReport& report, std::string_view state) {
    std::map<std::string, VersionManifest> manifests;
    const record::RequestRow row = row_of(report, [&](const auto& worker) {
        const VersionManifest manifest = record::make_manifest(*worker);
        return manifests.emplace(record::digest(manifest), manifest).first->first;
    });
    return write_where(row, state, {}, manifests);
}

std::string where_json(const record::RequestRow& answer,
                       const std::vector<record::RequestRow>& copies,
                       const std::map<std::string, VersionManifest>& manifests) {
    return write_where(answer, "done", copies, manifests);
}

std::string versions_json(const std::string& fingerprint, const VersionManifest& manifest) {
    std::string text;
    JsonWriter writer(text);
    writer.begin_object();
    write_versions(writer, fingerprint, manifest);
    writer.end_object();
    return text;
}

}  // namespace sluice::gateway
