#pragma once

// What GET /admin/status says, and `sluice ctl status` shows: the plan, and each pool with its workers.

#include <string>

#include "gateway/pool_set.h"

namespace sluice::gateway {

/// A JSON array of all pools. A worker's `state` is what it last said of itself (loading, ready, stopping), or
/// "lost" while it does not answer; what it has not said yet is null.
[[nodiscard]] std::string pools_json(const PoolSet& pools);

/// One of these workers.
[[nodiscard]] std::string worker_json(const WorkerView& worker);

/// {"plan":{"stable"},"pools"}, where one pool answers everything.
[[nodiscard]] std::string status_json(const Pool& stable, const PoolSet& pools);

}  // namespace sluice::gateway
