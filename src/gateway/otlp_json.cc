#include "gateway/otlp_json.h"

#include <fmt/format.h>

#include "base/trace_context.h"
#include "base/version.h"
#include "port/json_writer.h"

namespace sluice::gateway {
namespace {

using port::JsonWriter;

constexpr int kServer = 2;
constexpr int kClient = 3;
constexpr int kStatusError = 2;

/// OTLP's JSON writes 64-bit numbers as texts.
void write_number(JsonWriter& writer, std::string_view name, std::int64_t number) {
    writer.field(name, fmt::format("{}", number));
}

class Attributes {
public:
    explicit Attributes(JsonWriter& writer) : writer_(writer) {
        writer_.key("attributes");
        writer_.begin_array();
    }
    ~Attributes() { writer_.end_array(); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;

    void text(std::string_view name, std::string_view value) {
        open(name);
        writer_.field("stringValue", value);
        close();
    }
    void number(std::string_view name, std::uint64_t value) {
        open(name);
        write_number(writer_, "intValue", static_cast<std::int64_t>(value));
        close();
    }

private:
    void open(std::string_view name) {
        writer_.begin_object();
        writer_.field("key", name);
        writer_.key("value");
        writer_.begin_object();
    }
    void close() {
        writer_.end_object();
        writer_.end_object();
    }
    JsonWriter& writer_;
};

struct SpanHead {
    std::string_view id;
    std::string_view parent;
    std::string_view name;
    int kind;
    std::chrono::nanoseconds from;  ///< Since the arrival.
    std::chrono::nanoseconds to;
};

void write_head(JsonWriter& writer, const RequestReport& report, const SpanHead& head) {
    const std::chrono::nanoseconds arrival = report.time.time_since_epoch();
    writer.field("traceId", report.trace.trace_id);
    writer.field("spanId", head.id);
    if (!head.parent.empty()) writer.field("parentSpanId", head.parent);
    writer.field("name", head.name);
    writer.field("kind", head.kind);
    write_number(writer, "startTimeUnixNano", (arrival + head.from).count());
    write_number(writer, "endTimeUnixNano", (arrival + head.to).count());
}

void write_status(JsonWriter& writer, std::string_view fault) {
    if (fault.empty()) return;
    writer.key("status");
    writer.begin_object();
    writer.field("code", kStatusError);
    writer.field("message", fault);
    writer.end_object();
}

void write_request(JsonWriter& writer, const RequestReport& report) {
    const bool chat = report.endpoint == Endpoint::kChat;
    writer.begin_object();
    write_head(writer, report,
               {.id = report.trace.span_id,
                .parent = report.trace.parent_id,
                .name = chat ? "POST /v1/chat/completions" : "POST /v1/completions",
                .kind = kServer,
                .from = {},
                .to = report.duration});
    {
        Attributes attributes(writer);
        attributes.text("gen_ai.operation.name", chat ? "chat" : "text_completion");
        attributes.text("gen_ai.request.model", report.model);
        attributes.number("gen_ai.usage.input_tokens", report.prompt_tokens);
        attributes.number("gen_ai.usage.output_tokens", report.completion_tokens);
        attributes.number("http.response.status_code", static_cast<std::uint64_t>(report.status));
        attributes.text("sluice.rid", report.rid);
        attributes.text("sluice.pool", report.pool);
        attributes.text("sluice.role", to_string(report.role));
        attributes.text("sluice.outcome", to_string(report.outcome));
        attributes.number("sluice.cached_tokens", report.cached_tokens);
    }
    write_status(writer, report.outcome == Outcome::kOk ? "" : to_string(report.outcome));
    writer.end_object();
}

void write_leg(JsonWriter& writer, const RequestReport& report, const LegReport& leg) {
    const std::string id = draw_span_id();
    const std::string name = "leg " + leg.phase;
    writer.begin_object();
    write_head(writer, report,
               {.id = id,
                .parent = report.trace.span_id,
                .name = name,
                .kind = kClient,
                .from = leg.began,
                .to = leg.ended});
    {
        Attributes attributes(writer);
        attributes.text("sluice.pool", leg.pool);
        attributes.text("sluice.worker", leg.worker);
        attributes.number("sluice.tokens", leg.tokens);
    }
    write_status(writer, leg.fault);
    writer.end_object();
}

}  // namespace

std::string spans_json(const RequestReport& report) {
    std::string text;
    JsonWriter writer(text);
    write_request(writer, report);
    for (const LegReport& leg : report.legs) write_leg(writer, report, leg);
    return text;
}

std::string export_json(std::span<const std::string> spans) {
    std::string text = R"({"resourceSpans":[{"resource":{"attributes":[)"
                       R"({"key":"service.name","value":{"stringValue":"sluice"}},)"
                       R"({"key":"service.version","value":{"stringValue":")" +
                       version().version +
                       R"("}}]},"scopeSpans":[{"scope":{"name":"sluice.gateway"},"spans":[)";
    for (const std::string& each : spans) {
        if (&each != spans.data()) text += ',';
        text += each;
    }
    return text + "]}]}]}";
}

}  // namespace sluice::gateway
