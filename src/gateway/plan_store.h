#pragma once

// Where the state of the traffic plan and the log of its changes are kept: `plan.state` and
// `audit.jsonl` in the state folder.

#include <optional>
#include <string>

#include "base/error.h"
#include "traffic/audit_entry.h"
#include "traffic/state.h"

namespace sluice::gateway {

class PlanStore {
public:
    /// Of a folder that exists; empty keeps nothing.
    explicit PlanStore(std::string folder) : folder_(std::move(folder)) {}

    /// Nullopt if nothing was stored yet; an error if something was and can't be read.
    [[nodiscard]] Result<std::optional<traffic::State>> load() const;
    /// On disk once it returns.
    [[nodiscard]] Result<void> save(const traffic::State& state) const;
    /// Appends a line. What can't be written is logged: a decision doesn't wait for its minutes.
    void note(const traffic::AuditEntry& entry) const;

    [[nodiscard]] bool keeps() const { return !folder_.empty(); }

private:
    [[nodiscard]] std::string state_path() const { return folder_ + "/plan.state"; }

    std::string folder_;
};

}  // namespace sluice::gateway
