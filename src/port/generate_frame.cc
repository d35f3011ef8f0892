#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/limits.h"
#include "port/generate.h"
#include "port/json_reader.h"
#include "port/json_writer.h"
#include "port/kv_decision_json.h"
#include "port/kv_source.h"

namespace sluice::port {
namespace {

constexpr std::uint64_t kAnyCount = std::numeric_limits<std::uint64_t>::max();
constexpr std::array<std::string_view, 4> kFinishTypes{"stop", "length", "abort", "error"};

/// A probability of zero has no finite logarithm: null on the wire.
constexpr float kNever = -std::numeric_limits<float>::infinity();

void write(JsonWriter& writer, const TokenLogprob& entry) {
    writer.begin_array();
    writer.value(entry.logprob);
    writer.value(entry.token);
    writer.end_array();
}

/// Two lists of the same length, the second only if somebody asked for it: `NAME_logprobs` with the
/// chosen tokens and `NAME_top_logprobs` with the likeliest.
void write(JsonWriter& writer, std::string_view name, std::string_view top_name,
           const std::vector<PositionLogprobs>& positions) {
    if (positions.empty()) return;
    writer.key(name);
    writer.begin_array();
    for (const PositionLogprobs& position : positions) write(writer, position.chosen);
    writer.end_array();
    const bool top = std::ranges::any_of(positions, [](const auto& p) { return !p.top.empty(); });
    if (!top) return;
    writer.key(top_name);
    writer.begin_array();
    for (const PositionLogprobs& position : positions) {
        writer.begin_array();
        for (const TokenLogprob& entry : position.top) write(writer, entry);
        writer.end_array();
    }
    writer.end_array();
}

void write(JsonWriter& writer, const FinishReason& reason) {
    writer.begin_object();
    writer.field("type", kFinishTypes[static_cast<std::size_t>(reason.type)]);
    if (reason.matched) writer.field("matched", *reason.matched);
    if (!reason.message.empty()) writer.field("message", reason.message);
    if (!reason.code.empty()) writer.field("code", reason.code);
    writer.end_object();
}

void write(JsonWriter& writer, const KvHandover& handover) {
    writer.begin_object();
    write_fields(writer, handover.source);
    writer.field("hold_until_ms", handover.hold_until_ms);
    writer.end_object();
}

void write_meta(JsonWriter& writer, const GenerateFrame& frame) {
    writer.begin_object();
    writer.field("id", frame.rid);
    writer.field("prompt_tokens", frame.prompt_tokens);
    writer.field("cached_tokens", frame.cached_tokens);
    if (!frame.cached_tokens_by_source.empty()) {
        writer.key("cached_tokens_by_source");
        writer.begin_object();
        for (const auto& [source, tokens] : frame.cached_tokens_by_source) {
            writer.field(source, tokens);
        }
        writer.end_object();
    }
    writer.field("completion_tokens", frame.completion_tokens);
    writer.field("computed_tokens", frame.computed_tokens);
    writer.field("drafted", frame.drafted);
    writer.field("accepted", frame.accepted);
    if (frame.finish_reason) {
        writer.key("finish_reason");
        write(writer, *frame.finish_reason);
    }
    if (frame.kv) {
        writer.key("kv");
        write(writer, *frame.kv);
    }
    if (frame.kv_decision) {
        writer.key("kv_decision");
        write(writer, *frame.kv_decision);
    }
    writer.end_object();
}

std::optional<TokenLogprob> read_entry(const boost::json::value& value) {
    const auto* const pair = value.if_array();
    // SGLang appends the token's text or null, which is of no use here.
    if (pair == nullptr || pair->size() < 2) return std::nullopt;
    const std::optional<TokenId> token = as_token((*pair)[1]);
    const std::optional<float> logprob =
        (*pair)[0].is_null() ? std::optional<float>(kNever) : as_float((*pair)[0]);
    if (!token || !logprob) return std::nullopt;
    return TokenLogprob{.token = *token, .logprob = *logprob};
}

/// Answers whether all is well, and records what isn't.
bool read_entries(JsonFields& fields, const std::string& name, const boost::json::array& values,
                  std::vector<TokenLogprob>& out) {
    out.reserve(values.size());
    for (const auto& value : values) {
        const std::optional<TokenLogprob> entry = read_entry(value);
        if (!entry) {
            fields.fail(fmt::format("{}[{}]", name, out.size()),
                        "this must be an array of a log-probability and a token id");
            return false;
        }
        out.push_back(*entry);
    }
    return true;
}

bool read_top(JsonFields& fields, const std::string& name, const boost::json::value& value,
              std::vector<TokenLogprob>& out) {
    const auto* const entries = value.if_array();
    if (entries == nullptr || entries->size() > limits::kTopLogprobs) {
        fields.fail(
            name, fmt::format("this must be an array of at most {} entries", limits::kTopLogprobs));
        return false;
    }
    return read_entries(fields, name, *entries, out);
}

void read_positions(JsonFields& fields, const std::string& name, const std::string& top_name,
                    std::vector<PositionLogprobs>& out) {
    const auto* const chosen = fields.array(name, limits::kModelContextTokens);
    const auto* const top = fields.array(top_name, limits::kModelContextTokens);
    std::vector<TokenLogprob> entries;
    if (chosen != nullptr && !read_entries(fields, name, *chosen, entries)) return;
    if (top != nullptr && top->size() != entries.size()) {
        fields.fail(top_name, fmt::format("this has {} entries, but {} has {}", top->size(), name,
                                          entries.size()));
        return;
    }
    out.resize(entries.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].chosen = entries[i];
        const std::string place = top == nullptr ? "" : fmt::format("{}[{}]", top_name, i);
        if (top != nullptr && !read_top(fields, place, (*top)[i], out[i].top)) return;
    }
}

FinishReason read_finish(JsonFields fields) {
    FinishReason reason;
    std::string type;
    fields.read("type", type, limits::kPortTextBytes);
    const auto* const found = std::ranges::find(kFinishTypes, type);
    if (found == kFinishTypes.end()) {
        fields.fail("type", "this must be \"stop\", \"length\", \"abort\" or \"error\"");
        return reason;
    }
    reason.type = static_cast<FinishType>(found - kFinishTypes.begin());
    std::int64_t matched = -1;
    fields.read("matched", matched, 0, std::numeric_limits<TokenId>::max());
    if (matched >= 0) reason.matched = static_cast<TokenId>(matched);
    fields.read("message", reason.message, limits::kPortTextBytes);
    fields.read("code", reason.code, limits::kPortTextBytes);
    return reason;
}

KvHandover read_handover(JsonFields fields) {
    KvHandover handover;
    read_fields(fields, handover.source);
    if (handover.source.hold.empty()) fields.fail("hold", "this field is missing");
    fields.read("hold_until_ms", handover.hold_until_ms, 0, kAnyCount);
    return handover;
}

void read_sources(JsonFields& fields, GenerateFrame& frame) {
    constexpr std::string_view kName = "cached_tokens_by_source";
    const auto* const sources = fields.object(kName);
    if (sources == nullptr) return;
    if (sources->size() > limits::kPortSources) {
        fields.fail(kName, fmt::format("this has {} entries, but at most {} are allowed",
                                       sources->size(), limits::kPortSources));
        return;
    }
    JsonFields inside = fields.inside(*sources, kName);
    for (const auto& entry : *sources) {
        const std::string_view source(entry.key().data(), entry.key().size());
        inside.read(source, frame.cached_tokens_by_source[std::string(source)], 0, kAnyCount);
    }
}

void read_meta(JsonFields fields, GenerateFrame& frame) {
    fields.read_rid("id", frame.rid);
    fields.read("prompt_tokens", frame.prompt_tokens, 0, kAnyCount);
    fields.read("cached_tokens", frame.cached_tokens, 0, kAnyCount);
    read_sources(fields, frame);
    fields.read("completion_tokens", frame.completion_tokens, 0, kAnyCount);
    fields.read("computed_tokens", frame.computed_tokens, 0, kAnyCount);
    fields.read("drafted", frame.drafted, 0, kAnyCount);
    fields.read("accepted", frame.accepted, 0, kAnyCount);
    if (const auto* const finish = fields.object("finish_reason")) {
        frame.finish_reason = read_finish(fields.inside(*finish, "finish_reason"));
    }
    if (const auto* const kv = fields.object("kv")) {
        if (frame.finish_reason) fields.fail("kv", "a request that has ended hands nothing over");
        frame.kv = read_handover(fields.inside(*kv, "kv"));
    }
    if (const auto* const decision = fields.object("kv_decision"))
        frame.kv_decision = read_kv_decision(fields.inside(*decision, "kv_decision"));
}

void read_frame(JsonFields fields, GenerateFrame& frame) {
    fields.read_tokens("output_ids", frame.output_ids, limits::kModelContextTokens);
    read_positions(fields, "output_logprobs", "output_top_logprobs", frame.output_logprobs);
    read_positions(fields, "input_logprobs", "input_top_logprobs", frame.input_logprobs);
    if (!frame.output_logprobs.empty() && frame.output_logprobs.size() != frame.output_ids.size()) {
        fields.fail("output_logprobs",
                    fmt::format("this has {} entries, but output_ids has {}",
                                frame.output_logprobs.size(), frame.output_ids.size()));
    }
    if (const auto* const meta = fields.object("meta_info", Need::kRequired)) {
        read_meta(fields.inside(*meta, "meta_info"), frame);
    }
}

}  // namespace

std::string to_json(const GenerateFrame& frame) {
    std::string out;
    constexpr std::size_t kFixedBytes = 320;
    constexpr std::size_t kTokenBytes = 7;
    out.reserve(kFixedBytes + kTokenBytes * frame.output_ids.size());
    JsonWriter writer(out);
    writer.begin_object();
    writer.array("output_ids", frame.output_ids);
    write(writer, "output_logprobs", "output_top_logprobs", frame.output_logprobs);
    write(writer, "input_logprobs", "input_top_logprobs", frame.input_logprobs);
    writer.key("meta_info");
    write_meta(writer, frame);
    writer.end_object();
    return out;
}

Result<GenerateFrame> parse_generate_frame(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    GenerateFrame frame;
    read_frame(JsonFields(**root, {}, error), frame);
    if (error) return std::unexpected(*error);
    return frame;
}

}  // namespace sluice::port
