#include "sim/engine_parameters.h"

#include <fmt/format.h>

#include <utility>

#include "base/config.h"
#include "base/limits.h"

namespace sluice::sim {
namespace {

using config::Range;

/// One table of names: read and written in this order.
template <class Parameters, class Number, class Count>
void visit(Parameters& p, Number&& number, Count&& count) {
    number("step_us", p.step_us);
    number("prefill_row_us", p.prefill_row_us);
    number("prefill_attended_us", p.prefill_attended_us);
    number("prefill_far_us", p.prefill_far_us);
    number("decode_row_us", p.decode_row_us);
    number("decode_attended_us", p.decode_attended_us);
    number("decode_far_us", p.decode_far_us);
    number("encode_row_us", p.encode_row_us);
    number("neighbour_share", p.neighbour_share);
    number("forecast_step_us", p.forecast_step_us);
    number("forecast_row_us", p.forecast_row_us);
    number("forecast_attended_us", p.forecast_attended_us);
    number("forecast_logits_us", p.forecast_logits_us);
    number("request_us", p.request_us);
    number("request_token_us", p.request_token_us);
    number("handover_token_us", p.handover_token_us);
    number("dram_token_us", p.dram_token_us);
    number("node_token_us", p.node_token_us);
    number("step_time_us", p.step_time_us);
    count("near_tokens", p.near_tokens, Range{0, limits::kTraceTokens});
    count("decode_near", p.decode_near, Range{0, limits::kTraceTokens});
    count("kv_token_bytes", p.kv_token_bytes, Range{1, limits::kTraceTokens});
    count("blocks", p.blocks, Range{1, limits::kTraceTokens});
    count("running_max", p.running_max, Range{1, limits::kEngineWaiting});
    count("waiting_max", p.waiting_max, Range{1, limits::kTraceRequests});
    count("step_tokens", p.step_tokens, Range{1, limits::kTraceTokens});
}

}  // namespace

std::string_view to_string(PrefillOrder order) {
    return order == PrefillOrder::kShortest ? "shortest" : "arrival";
}

namespace {

Result<EngineParameters> from(Result<config::Document> document) {
    if (!document) return std::unexpected(document.error());
    config::Table root = document->root();
    EngineParameters parameters;
    visit(
        parameters,
        [&](std::string_view key, double& value) { value = root.number(key, 0.0).value_or(value); },
        [&](std::string_view key, std::uint32_t& value, Range range) {
            value = static_cast<std::uint32_t>(root.integer(key, range).value_or(value));
        });
    if (const auto order = root.text("order")) {
        if (*order != "arrival" && *order != "shortest")
            root.reject("order", "must be arrival or shortest");
        parameters.order = *order == "shortest" ? PrefillOrder::kShortest : PrefillOrder::kArrival;
    }
    // Time must go on while work is done.
    if (parameters.step_us <= 0.0) root.reject("step_us", "must be above 0");
    if (parameters.prefill_row_us <= 0.0) root.reject("prefill_row_us", "must be above 0");
    if (parameters.step_tokens < parameters.running_max)
        root.reject("step_tokens", "must not be below running_max: each answer takes one a step");
    root.finish();
    if (const auto errors = document->errors(); !errors.empty())
        return std::unexpected(errors.front());
    return parameters;
}

}  // namespace

Result<EngineParameters> parse_engine_parameters(std::string_view text, std::string name) {
    return from(config::Document::parse(text, std::move(name)));
}

Result<EngineParameters> read_engine_parameters(const std::string& path) {
    return from(config::Document::load(path));
}

std::string to_toml(const EngineParameters& parameters) {
    std::string text;
    visit(
        parameters,
        [&](std::string_view key, double value) { text += fmt::format("{} = {}\n", key, value); },
        [&](std::string_view key, std::uint32_t value, Range) {
            text += fmt::format("{} = {}\n", key, value);
        });
    return text + fmt::format("order = \"{}\"\n", to_string(parameters.order));
}

double step_microseconds(const EngineParameters& p, const StepLoad& load) {
    return p.step_us + p.prefill_row_us * static_cast<double>(load.prefill_rows) +
           p.prefill_attended_us * static_cast<double>(load.prefill_attended) +
           p.prefill_far_us * static_cast<double>(load.prefill_far) +
           p.decode_row_us * static_cast<double>(load.decode_rows) +
           p.decode_attended_us * static_cast<double>(load.decode_attended) +
           p.decode_far_us * static_cast<double>(load.decode_far) +
           p.encode_row_us * static_cast<double>(load.encode_rows);
}

}  // namespace sluice::sim
