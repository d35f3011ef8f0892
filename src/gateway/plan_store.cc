#include "gateway/plan_store.h"

#include "base/durable_file.h"
#include "base/limits.h"
#include "base/log.h"

namespace sluice::gateway {

Result<std::optional<traffic::State>> PlanStore::load() const {
    if (!keeps()) return std::nullopt;
    const auto text = read_if_there(state_path(), limits::kTrafficStateBytes);
    if (!text) return std::unexpected(text.error());
    if (!*text) return std::nullopt;
    auto state = traffic::parse_state(**text);
    if (!state) return std::unexpected(state.error().within(state_path()));
    return std::move(*state);
}

Result<void> PlanStore::save(const traffic::State& state) const {
    if (!keeps()) return {};
    return write_durably(state_path(), traffic::to_text(state));
}

void PlanStore::note(const traffic::AuditEntry& entry) const {
    const std::string line = to_json(entry);
    log::info("plan: {}", line);
    if (!keeps()) return;
    const auto written =
        append_durably(folder_ + "/audit.jsonl", line + "\n", limits::kAuditLogBytes);
    if (!written) log::error("the audit log: {}", written.error().to_string());
}

}  // namespace sluice::gateway
