#pragma once

// Metrics of the traffic plan (docs/metrics.md).

#include <string_view>

#include "base/metrics.h"

namespace sluice::gateway {

class PlanProbe {
public:
    explicit PlanProbe(metrics::Registry& registry)
        : shadows_(registry.counter("sluice_shadow_total",
                                    "Copies of requests, by what came of them", {"result"})),
          rollbacks_(registry.counter("sluice_rollbacks_total",
                                      "Times all traffic was sent back to the stable pool",
                                      {"reason"})),
          latched_(
              registry
                  .gauge("sluice_plan_latched", "1 while all traffic is held on the stable pool")
                  .with({})) {}

    void shadow(std::string_view result) { shadows_.with({result}).add(); }
    void rolled_back(std::string_view reason) { rollbacks_.with({reason}).add(); }
    void latched(bool latched) { latched_.set(latched ? 1 : 0); }

private:
    metrics::Family<metrics::Counter> shadows_;
    metrics::Family<metrics::Counter> rollbacks_;
    metrics::Gauge latched_;
};

}  // namespace sluice::gateway
