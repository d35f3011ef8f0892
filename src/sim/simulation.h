#pragma once

// A whole run: what is sent, what goes wrong, and what came of it. The same input gives the same
// results, to the last bit.

#include <functional>
#include <span>

#include "sim/fault_plan.h"
#include "sim/results.h"
#include "sim/sim_gateway.h"
#include "sim/workload.h"

namespace sluice::sim {

struct SimulationOptions {
    GatewayOptions gateway;
    Objectives objectives;
    std::uint64_t seed = 0;
};

struct SimProgress {
    std::size_t sent = 0;
    std::size_t ended = 0;
    Time now{};
};

class Simulation {
public:
    /// `work` in order of arrival, and `faults` in order of time; both outlive this.
    Simulation(const SimulationOptions& options, std::span<const SimWork> work,
               std::span<const Fault> faults);

    /// Until every request has ended; `on_progress`, if set, is called now and then.
    [[nodiscard]] Results run(const std::function<void(const SimProgress&)>& on_progress = {});

    // For tests, before `run`.
    [[nodiscard]] EventQueue& queue() { return queue_; }
    [[nodiscard]] SimGateway& gateway() { return gateway_; }
    [[nodiscard]] const Results& results() const { return results_; }

private:
    void arrive();
    void plan_faults();
    void apply(const Fault& fault, std::size_t number);
    void collect();

    SimulationOptions options_;
    std::span<const SimWork> work_;
    std::span<const Fault> faults_;
    EventQueue queue_;
    Results results_;
    SimGateway gateway_;
    std::size_t sent_ = 0;
};

}  // namespace sluice::sim
