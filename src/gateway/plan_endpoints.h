#pragma once

// The traffic plan at the admin address: GET, PUT and diff of the plan, rollback, rearm, and status.
//
// A plan is sent as the TOML text it is written in; other tables in it are not looked at. Who asks and
// why is told by the headers x-sluice-by and x-sluice-why, what it is called in complaints by
// x-sluice-file, for the audit log and the places of mistakes. `?force=true` accepts an unknown capacity of
// the stable pool.

#include "gateway/gateway.h"

namespace sluice::gateway {

class PlanService;

/// Both must outlive the requests to these endpoints.
void add_plan_endpoints(Gateway& gateway, PlanService& service);

}  // namespace sluice::gateway
