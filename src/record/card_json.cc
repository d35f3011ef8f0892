#include "port/json_writer.h"
#include "record/card.h"

namespace sluice::record {
namespace {

using port::JsonWriter;

void write_optional(JsonWriter& writer, std::string_view name, std::optional<double> number) {
    writer.key(name);
    if (number) {
        writer.value(*number);
    } else {
        writer.null();
    }
}

void write(JsonWriter& writer, std::string_view name, const Percentiles& percentiles) {
    writer.key(name);
    writer.begin_object();
    write_optional(writer, "p50", percentiles.p50);
    write_optional(writer, "p90", percentiles.p90);
    write_optional(writer, "p99", percentiles.p99);
    writer.end_object();
}

void write(JsonWriter& writer, const Judgement& judgement) {
    writer.begin_object();
    writer.field("metric", judgement.metric);
    writer.field("verdict", to_string(judgement.verdict));
    writer.field("low", judgement.interval.low);
    writer.field("high", judgement.interval.high);
    writer.field("margin", judgement.margin);
    writer.end_object();
}

void write(JsonWriter& writer, const CardRow& row) {
    writer.begin_object();
    writer.field("bucket", to_string(row.bucket));
    writer.field("kind", to_string(row.kind));
    writer.field("pool", row.pool);
    writer.field("requests", row.requests);
    write_optional(writer, "success_rate", row.success_rate());
    writer.key("outcomes");
    writer.begin_object();
    for (const auto& [outcome, count] : row.outcomes) writer.field(to_string(outcome), count);
    writer.end_object();
    write(writer, "ttft_ms", row.ttft);
    write(writer, "tbt_ms", row.tbt);
    write_optional(writer, "cached_share", row.cached_share);
    write_optional(writer, "recomputed_share", row.recomputed_share);
    writer.key("device_memory_bytes");
    if (row.device_memory_bytes != 0) {
        writer.value(row.device_memory_bytes);
    } else {
        writer.null();
    }
    write_optional(writer, "cost_per_success", row.cost_per_success());
    write_optional(writer, "differs_share", row.differs_share);
    write_optional(writer, "noise_floor", row.noise_floor);
    writer.field("verdict", to_string(row.verdict));
    writer.key("judgements");
    writer.begin_array();
    for (const Judgement& judgement : row.judgements) write(writer, judgement);
    writer.end_array();
    writer.end_object();
}

void write(JsonWriter& writer, const CardVersion& version) {
    writer.begin_object();
    writer.field("fingerprint", version.fingerprint);
    writer.field("requests", version.requests);
    visit_fields(version.manifest, [&](std::string_view name, const std::string& value) {
        if (!value.empty()) writer.field(name, value);
    });
    writer.end_object();
}

}  // namespace

std::string to_json(const Card& card) {
    std::string text;
    JsonWriter writer(text);
    writer.begin_object();
    writer.field("baseline", card.baseline);
    writer.field("candidate", card.candidate);
    writer.field("since", card.since);
    writer.field("from", card.from_ms);
    writer.field("to", card.to_ms);
    writer.field("min_samples", card.min_samples);
    writer.field("verdict", to_string(card.verdict()));
    writer.key("rows");
    writer.begin_array();
    for (const CardRow& row : card.rows) write(writer, row);
    writer.end_array();
    writer.key("versions");
    writer.begin_object();
    for (const auto& [pool, versions] : card.versions) {
        writer.key(pool);
        writer.begin_array();
        for (const CardVersion& version : versions) write(writer, version);
        writer.end_array();
    }
    writer.end_object();
    writer.end_object();
    return text;
}

}  // namespace sluice::record
