#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "base/limits.h"
#include "port/json_writer.h"
#include "port/kv_decision_json.h"
#include "record/json_text.h"
#include "record/request_row.h"

namespace sluice::record {
namespace {

using boost::json::object;
using port::JsonWriter;

double ms(std::chrono::microseconds duration) {
    return static_cast<double>(duration.count()) / 1000.0;
}

// ---- Writing --------------------------------------------------------------------------------------

void write_optional(JsonWriter& writer, std::string_view name, std::string_view text) {
    if (!text.empty()) writer.field(name, text);
}

void write_gaps(JsonWriter& writer, const LatencySketch& gaps) {
    writer.key("tbt_ms");
    if (gaps.empty()) return writer.null();
    writer.begin_object();
    writer.field("p50", ms(*gaps.quantile(0.5)));
    writer.field("p99", ms(*gaps.quantile(0.99)));
    writer.field("max", ms(gaps.max()));
    writer.end_object();
    writer.key("tbt_sketch");
    writer.begin_array();
    for (const LatencySketch::Bucket& bucket : gaps.buckets()) {
        writer.begin_array();
        writer.value(bucket.index);
        writer.value(bucket.count);
        writer.end_array();
    }
    writer.end_array();
}

void write_legs(JsonWriter& writer, const std::vector<Leg>& legs) {
    writer.key("legs");
    writer.begin_array();
    for (const Leg& leg : legs) {
        writer.begin_object();
        writer.field("phase", leg.phase);
        writer.field("pool", leg.pool);
        writer.field("worker", leg.worker);
        writer.field("fingerprint", leg.fingerprint);
        writer.field("held_ms", ms(leg.held));
        writer.end_object();
    }
    writer.end_array();
}

void write_comparison(JsonWriter& writer, const Comparison& comparison) {
    writer.key("comparison");
    writer.begin_object();
    writer.field("pool", comparison.pool);
    writer.field("differs", !comparison.differences.empty());
    writer.array("differences", comparison.differences);
    if (comparison.first_difference) writer.field("first_difference", *comparison.first_difference);
    if (comparison.logprob_delta) writer.field("logprob_delta", *comparison.logprob_delta);
    if (comparison.ttft_delta) writer.field("ttft_delta_ms", ms(*comparison.ttft_delta));
    if (comparison.tbt_delta) writer.field("tbt_delta_ms", ms(*comparison.tbt_delta));
    writer.end_object();
}

void write_tokens(JsonWriter& writer, const RequestRow& row) {
    writer.field("prompt_tokens", row.prompt_tokens);
    writer.field("cached_tokens", row.cached_tokens);
    writer.key("cached_by_source");
    writer.begin_object();
    for (const auto& [source, tokens] : row.cached_by_source) writer.field(source, tokens);
    writer.end_object();
    if (row.kv_decision) {
        writer.key("kv_decision");
        write(writer, *row.kv_decision);
    }
    writer.field("completion_tokens", row.completion_tokens);
}

void write_end(JsonWriter& writer, const RequestRow& row) {
    writer.field("outcome", to_string(row.outcome));
    write_optional(writer, "error", row.error);
    writer.field("resumes", row.resumes);
    writer.field("retries", row.retries);
    writer.field("recomputed_tokens", row.recomputed_tokens);
    writer.key("recompute_cause");
    if (row.recompute_cause) {
        writer.value(to_string(*row.recompute_cause));
    } else {
        writer.null();
    }
}

// ---- Reading --------------------------------------------------------------------------------------

Error unknown(std::string_view name, const std::string& value) {
    return Error::invalid(fmt::format("\"{}\" is not known here", value.substr(0, 64)),
                          std::string(name));
}

/// Keeps the first name that is none of those known.
class Names {
public:
    template <class Enum>
    void read(const object& from, std::string_view name, Enum& out,
              std::optional<Enum> (*parse)(std::string_view)) {
        const std::string text = text_field(from, name);
        if (const auto value = parse(text)) {
            out = *value;
        } else if (!error_) {
            error_ = unknown(name, text);
        }
    }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

private:
    std::optional<Error> error_;
};

LatencySketch read_gaps(const object& from) {
    const object* const summary = object_field(from, "tbt_ms");
    const auto* const sketch = array_field(from, "tbt_sketch");
    if (summary == nullptr || sketch == nullptr) return {};
    std::vector<LatencySketch::Bucket> buckets;
    for (const auto& pair : *sketch) {
        const auto* const both = pair.if_array();
        if (both == nullptr || both->size() != 2) continue;
        const auto index = (*both)[0].if_int64();
        const auto count = (*both)[1].if_int64();
        // A count that large would overflow sums; it is no measurement.
        if (index == nullptr || count == nullptr || *index < 0 || *count <= 0) continue;
        if (*index > LatencySketch::kLastBucket || *count > std::int64_t{1} << 40) continue;
        buckets.push_back({static_cast<std::uint16_t>(*index), static_cast<std::uint64_t>(*count)});
        if (buckets.size() > LatencySketch::kLastBucket) break;
    }
    return LatencySketch::restore(buckets,
                                  ms_field(*summary, "max").value_or(std::chrono::microseconds(0)));
}

std::vector<Leg> read_legs(const object& from) {
    std::vector<Leg> legs;
    const auto* const array = array_field(from, "legs");
    if (array == nullptr) return legs;
    for (const auto& value : *array) {
        const auto* const leg = value.if_object();
        if (leg == nullptr || legs.size() == limits::kRecordLegs) continue;
        legs.push_back({.phase = text_field(*leg, "phase"),
                        .pool = text_field(*leg, "pool"),
                        .worker = text_field(*leg, "worker"),
                        .fingerprint = text_field(*leg, "fingerprint"),
                        .held = ms_field(*leg, "held_ms").value_or(std::chrono::microseconds(0))});
    }
    return legs;
}

std::optional<Comparison> read_comparison(const object& from) {
    const object* const inner = object_field(from, "comparison");
    if (inner == nullptr) return std::nullopt;
    Comparison comparison{.pool = text_field(*inner, "pool")};
    if (const auto* const differences = array_field(*inner, "differences")) {
        for (const auto& value : *differences) {
            if (value.is_string()) comparison.differences.emplace_back(value.get_string());
        }
    }
    if (inner->contains("first_difference"))
        comparison.first_difference = count_field(*inner, "first_difference");
    comparison.logprob_delta = number_field(*inner, "logprob_delta");
    comparison.ttft_delta = ms_field(*inner, "ttft_delta_ms");
    comparison.tbt_delta = ms_field(*inner, "tbt_delta_ms");
    return comparison;
}

void read_tokens(const object& from, RequestRow& row) {
    row.prompt_tokens = count_field(from, "prompt_tokens");
    row.cached_tokens = count_field(from, "cached_tokens");
    row.completion_tokens = count_field(from, "completion_tokens");
    if (const object* const sources = object_field(from, "cached_by_source")) {
        for (const auto& [name, value] : *sources)
            row.cached_by_source[std::string(name)] = count_field(*sources, name);
    }
    if (const object* const decision = object_field(from, "kv_decision")) {
        std::optional<Error> ignored;  // As everywhere here, what makes no sense reads as nothing.
        row.kv_decision = port::read_kv_decision({*decision, "kv_decision", ignored});
    }
}

void read_end(const object& from, RequestRow& row) {
    row.error = text_field(from, "error");
    row.resumes = static_cast<std::uint32_t>(count_field(from, "resumes"));
    row.retries = static_cast<std::uint32_t>(count_field(from, "retries"));
    row.recomputed_tokens = count_field(from, "recomputed_tokens");
    row.recompute_cause = parse_recompute_cause(text_field(from, "recompute_cause"));
}

}  // namespace

std::string to_json(const RequestRow& row, std::optional<double> cost) {
    std::string text;
    text.reserve(768);
    JsonWriter writer(text);
    writer.begin_object();
    writer.field("rid", row.rid);
    writer.field("request_id", row.request_id);
    writer.field("time", row.time_ms);
    writer.field("tenant", row.tenant);
    writer.field("pool", row.pool);
    writer.field("role", to_string(row.role));
    writer.field("bucket", to_string(row.bucket()));
    writer.field("kind", to_string(row.kind));
    write_tokens(writer, row);
    writer.key("ttft_ms");
    if (row.ttft) {
        writer.value(ms(*row.ttft));
    } else {
        writer.null();
    }
    write_gaps(writer, row.gaps);
    writer.field("duration_ms", ms(row.duration));
    write_end(writer, row);
    write_optional(writer, "schema_digest", row.schema_digest);
    if (row.device_memory_bytes != 0) writer.field("device_memory_bytes", row.device_memory_bytes);
    if (cost) writer.field("cost", *cost);
    writer.field("fingerprint", row.fingerprint);
    write_optional(writer, "trace_id", row.trace_id);
    write_legs(writer, row.legs);
    if (row.comparison) write_comparison(writer, *row.comparison);
    if (row.weight != 1) writer.field("weight", row.weight);
    writer.end_object();
    return text;
}

Result<ParsedRow> parse_row(std::string_view json) {
    const auto from = parse_object(json);
    if (!from) return std::unexpected(from.error());
    ParsedRow parsed;
    RequestRow& row = parsed.row;
    Names names;
    names.read(*from, "role", row.role, parse_role);
    names.read(*from, "kind", row.kind, parse_kind);
    names.read(*from, "outcome", row.outcome, parse_outcome);
    if (names.error()) return std::unexpected(*names.error());
    row.rid = text_field(*from, "rid");
    row.request_id = text_field(*from, "request_id");
    row.time_ms = static_cast<std::int64_t>(count_field(*from, "time"));
    row.tenant = text_field(*from, "tenant");
    row.pool = text_field(*from, "pool");
    read_tokens(*from, row);
    row.ttft = ms_field(*from, "ttft_ms");
    row.gaps = read_gaps(*from);
    row.duration = ms_field(*from, "duration_ms").value_or(std::chrono::microseconds(0));
    read_end(*from, row);
    row.schema_digest = text_field(*from, "schema_digest");
    row.device_memory_bytes = count_field(*from, "device_memory_bytes");
    row.fingerprint = text_field(*from, "fingerprint");
    row.trace_id = text_field(*from, "trace_id");
    row.legs = read_legs(*from);
    row.comparison = read_comparison(*from);
    row.weight = std::max<std::uint64_t>(1, count_field(*from, "weight"));
    parsed.cost = number_field(*from, "cost");
    return parsed;
}

}  // namespace sluice::record
