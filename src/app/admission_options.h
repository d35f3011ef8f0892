#pragma once

// From the configuration's words to the queue's and the tenants' limits.

#include "base/service_config.h"
#include "gateway/fair_gate.h"

namespace sluice::app {

[[nodiscard]] gateway::FairGateOptions admission_options(const ServiceConfig& config);

}  // namespace sluice::app
