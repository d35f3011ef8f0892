#include "port/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/limits.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {
namespace {

constexpr std::array<std::string_view, 4> kStates{"loading", "ready", "stopping", "stalled"};
constexpr std::uint64_t kAnyCount = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kAny64 = std::numeric_limits<std::uint64_t>::max();

/// What a report and each of its ranks say alike.
template <class Load>
void write_load(JsonWriter& writer, const Load& load) {
    writer.field("running", load.running);
    writer.field("waiting", load.waiting);
    writer.field("kv_used_share", load.kv_used_share);
    writer.field("computed_tokens", load.computed_tokens);
}

template <class Load>
void read_load(JsonFields& fields, Load& load) {
    fields.read("running", load.running, 0, kAnyCount);
    fields.read("waiting", load.waiting, 0, kAnyCount);
    fields.read("kv_used_share", load.kv_used_share, FloatRange{0.0F, 1.0F});
    fields.read("computed_tokens", load.computed_tokens, 0, kAny64);
}

void read_ranks(JsonFields& fields, std::vector<RankLoad>& out) {
    const auto* const ranks = fields.array("ranks", limits::kDpRanks);
    if (ranks == nullptr) return;
    for (const auto& value : *ranks) {
        const std::string name = fmt::format("ranks[{}]", out.size());
        const auto* const object = value.if_object();
        if (object == nullptr) return fields.fail(name, "this must be an object");
        JsonFields inside = fields.inside(*object, name);
        read_load(inside, out.emplace_back());
    }
}

void read_state(JsonFields& fields, EngineState& out) {
    std::string text;
    fields.read("state", text, limits::kPortTextBytes);
    const auto* const found = std::ranges::find(kStates, text);
    if (found == kStates.end()) {
        return fields.fail("state", R"(this must be "loading", "ready", "stopping" or "stalled")");
    }
    out = static_cast<EngineState>(found - kStates.begin());
}

}  // namespace

std::string_view to_string(EngineState state) { return kStates[static_cast<std::size_t>(state)]; }

std::string to_json(const LoadReport& report) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("state", to_string(report.state));
    write_load(writer, report);
    if (!report.ranks.empty()) {
        writer.key("ranks");
        writer.begin_array();
        for (const RankLoad& rank : report.ranks) {
            writer.begin_object();
            write_load(writer, rank);
            writer.end_object();
        }
        writer.end_array();
    }
    if (report.pid != 0) writer.field("pid", report.pid);
    if (report.kv_epoch != 0) writer.field("kv_epoch", report.kv_epoch);
    if (report.kv_node_token_ns != 0) writer.field("kv_node_token_ns", report.kv_node_token_ns);
    if (report.kv_peer_token_ns != 0) writer.field("kv_peer_token_ns", report.kv_peer_token_ns);
    writer.end_object();
    return out;
}

Result<LoadReport> parse_load_report(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    JsonFields fields(**root, {}, error);
    LoadReport report;
    read_state(fields, report.state);
    read_load(fields, report);
    read_ranks(fields, report.ranks);
    fields.read("pid", report.pid, 0, kAnyCount);
    fields.read("kv_epoch", report.kv_epoch, 0, kAny64);
    fields.read("kv_node_token_ns", report.kv_node_token_ns, 0, kAnyCount);
    fields.read("kv_peer_token_ns", report.kv_peer_token_ns, 0, kAnyCount);
    if (error) return std::unexpected(*error);
    return report;
}

}  // namespace sluice::port
