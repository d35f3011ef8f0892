#include "sim/simulation.h"

#include "base/limits.h"
#include "trace/random.h"

namespace sluice::sim {
namespace {

/// Events between two looks at the progress.
constexpr std::uint64_t kProgressEvents = 65'536;

}  // namespace

Simulation::Simulation(const SimulationOptions& options, std::span<const SimWork> work,
                       std::span<const Fault> faults)
    : options_(options),
      work_(work),
      faults_(faults),
      results_{.objectives = options.objectives},
      gateway_(queue_, options.gateway, results_) {}

void Simulation::arrive() {
    gateway_.submit(work_[sent_++]);
    if (sent_ < work_.size()) queue_.at(Time(work_[sent_].at), [this] { arrive(); });
}

void Simulation::plan_faults() {
    for (std::size_t i = 0; i < faults_.size(); ++i)
        queue_.at(Time(faults_[i].at), [this, i] { apply(faults_[i], i); });
}

void Simulation::apply(const Fault& fault, std::size_t number) {
    SimEngine& engine = gateway_.fleet().engine(fault.worker);
    switch (fault.kind) {
        case Fault::Kind::kCrash: return engine.crash(fault.duration);
        case Fault::Kind::kStall: return engine.stall(fault.duration);
        case Fault::Kind::kSlow: return engine.slow(fault.factor, fault.duration);
        case Fault::Kind::kOtherModel:
            engine.crash(Duration::zero());
            queue_.after(Duration::zero(), [&engine] { engine.serve_other_model(); });
            queue_.after(fault.duration, [&engine] { engine.crash(Duration::zero()); });
            return;
        case Fault::Kind::kRestart: return gateway_.restart(fault.worker, fault.duration);
        case Fault::Kind::kCancel:
            return gateway_.cancel(fault.share, trace::Random(options_.seed + number).next());
    }
}

Results Simulation::run(const std::function<void(const SimProgress&)>& on_progress) {
    plan_faults();
    if (!work_.empty()) queue_.at(Time(work_.front().at), [this] { arrive(); });
    for (std::uint64_t events = 1; sent_ < work_.size() || gateway_.live() > 0; ++events) {
        if (!queue_.step()) break;
        if (on_progress && events % kProgressEvents == 0)
            on_progress({.sent = sent_, .ended = sent_ - gateway_.live(), .now = queue_.now()});
    }
    // What ended requests left to others gets the time that it may take: holds have an end.
    gateway_.fleet().stop();
    const Time until = queue_.now() + std::chrono::seconds(limits::kKvHoldSeconds + 1);
    bool settled = false;
    queue_.at(until, [&] { settled = true; });
    while (!settled && queue_.step()) {
    }
    collect();
    return results_;
}

void Simulation::collect() {
    results_.left_over = gateway_.in_use();
    Fleet& fleet = gateway_.fleet();
    for (routing::WorkerIndex worker = 0; worker < fleet.size(); ++worker) {
        SimEngine& engine = fleet.engine(worker);
        const routing::LegPhase phase = fleet.phase(worker);
        const EngineTotals& totals = engine.totals();
        results_.workers.push_back({.computes_prompts = phase == routing::LegPhase::kFull ||
                                                        phase == routing::LegPhase::kPrefill,
                                    .prefill_tokens = totals.prefill_tokens,
                                    .decode_tokens = totals.decode_tokens,
                                    .steps = totals.steps,
                                    .computing = totals.computing,
                                    .preemptions = totals.preemptions,
                                    .evictions = engine.cache().evictions(),
                                    .crashes = totals.crashes});
    }
    if (const SharedCache* const nodes = fleet.nodes()) {
        results_.nodes = {.nodes = options_.gateway.fleet.nodes->nodes,
                          .blocks = nodes->blocks(),
                          .evictions = nodes->evictions(),
                          .imbalance = nodes->imbalance()};
    }
}

}  // namespace sluice::sim
