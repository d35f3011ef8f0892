#pragma once

// The cache nodes that `sluice up` starts: what each is told, and on which ports. Where a block is kept
// is chosen by the nodes' addresses, so a node that comes back elsewhere would lose its blocks to
// everybody: the state folder remembers the ports.

#include <string>
#include <vector>

#include "app/service_state.h"
#include "app/state_folder.h"
#include "app/supervisor.h"
#include "base/error.h"
#include "base/service_config.h"

namespace sluice::app {

/// As many as `config.kv.start_nodes`, each with a folder below `folder`, which is created. A node gets
/// the ports it had the last time unless they are taken by now.
[[nodiscard]] Result<std::vector<KvNodePlan>> plan_kv_nodes(const ServiceConfig& config,
                                                            const StateFolder& folder);

/// Writes the ports down that the nodes of a ready service have.
[[nodiscard]] Result<void> remember_kv_nodes(const StateFolder& folder, const ServiceState& state);

}  // namespace sluice::app
