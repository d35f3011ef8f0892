#pragma once

// What one worker is in the registry: a target for each of its data-parallel ranks. They are chosen
// each by itself, and are ready, drained and lost together.
//
// Belongs to the event loop's thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "port/load_report.h"
#include "port/server_info.h"
#include "routing/registry.h"

namespace sluice::gateway {

class WorkerTargets {
public:
    WorkerTargets(routing::Registry& registry, routing::WorkerOptions options);
    /// Leases on them may end later.
    ~WorkerTargets();
    WorkerTargets(const WorkerTargets&) = delete;
    WorkerTargets& operator=(const WorkerTargets&) = delete;

    /// New ones are not ready. Error `kOutOfRange` where the registry has no room; then as many are
    /// there as there was room for.
    [[nodiscard]] Result<void> resize(std::size_t ranks);
    [[nodiscard]] std::span<const routing::WorkerIndex> indices() const { return indices_; }
    [[nodiscard]] routing::WorkerIndex first() const { return indices_.front(); }
    /// Which rank it is; nothing to say where there is only one.
    [[nodiscard]] std::optional<std::uint32_t> rank_of(routing::WorkerIndex target) const;

    void set_ready(bool ready, routing::Time now);
    [[nodiscard]] bool ready() const { return registry_.ready(first()); }
    [[nodiscard]] bool takes_requests(routing::Time now) const;
    void drain(bool on);
    [[nodiscard]] bool draining() const { return registry_.draining(first()); }
    /// Requests that are leased on them.
    [[nodiscard]] std::uint32_t requests() const;

    void report(const port::LoadReport& load, routing::Time now);
    void on_restart(routing::Time now);
    /// What it is now; false if its pool serves another model. `name` is the failure group of one
    /// that names none.
    [[nodiscard]] bool describe(const port::ServerInfo& info, const std::string& name,
                                routing::Time now);

private:
    void set_costs(const port::ServerInfo& info);
    void take_load_times(const port::LoadReport& load);

    routing::Registry& registry_;
    routing::WorkerOptions options_;
    routing::Costs costs_;
    std::vector<routing::WorkerIndex> indices_;  ///< By rank.
};

}  // namespace sluice::gateway
