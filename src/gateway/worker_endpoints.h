#pragma once

// The workers at the admin address: POST /workers {"url","pool","phase"?,"lease_s"?} says that one is
// there; GET, PATCH {"draining"} and DELETE /workers/NAME look at it, drain it, take it away.

#include "gateway/router.h"
#include "gateway/worker_directory.h"

namespace sluice::gateway {

/// `directory` outlives the routes.
void add_worker_endpoints(Router& routes, WorkerDirectory& directory);

}  // namespace sluice::gateway
