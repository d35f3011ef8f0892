#pragma once

// What GET /admin/status says, and `sluice ctl status` shows: the plan, and each pool with its workers.

#include <string>

#include "gateway/pool_set.h"

namespace sluice::gateway {

/// One JSON object. A worker's `state` is what it last said of itself (loading, ready, stopping), or
/// "lost" while it does not answer; what it has not said yet is null.
[[nodiscard]] std::string status_json(const Pool& stable, const PoolSet& pools);

}  // namespace sluice::gateway
