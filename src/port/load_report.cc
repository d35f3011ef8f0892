#include "port/load_report.h"

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
    writer.field("running", report.running);
    writer.field("waiting", report.waiting);
    writer.field("kv_used_share", report.kv_used_share);
    if (report.pid != 0) writer.field("pid", report.pid);
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
    fields.read("running", report.running, 0, kAnyCount);
    fields.read("waiting", report.waiting, 0, kAnyCount);
    fields.read("kv_used_share", report.kv_used_share, FloatRange{0.0F, 1.0F});
    fields.read("pid", report.pid, 0, kAnyCount);
    if (error) return std::unexpected(*error);
    return report;
}

}  // namespace sluice::port
