#pragma once

// The simulated engines of one pool, and what the gateway knows of them: its registry, fed by probes,
// cache events and the fates of legs as the real gateway feeds it (gateway/native_pool, kv_event_feed).
//
// What the gateway knows is late by the time of a message: a crash shows at the next probe, or when a
// leg breaks.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dispatch/request.h"
#include "routing/registry.h"
#include "sim/event_queue.h"
#include "sim/sim_engine.h"

namespace sluice::sim {

struct FleetOptions {
    /// Workers by what they are for; at least one in all.
    std::uint32_t full = 1;
    std::uint32_t encode = 0;
    std::uint32_t prefill = 0;
    std::uint32_t decode = 0;
    EngineParameters engine;
    routing::Policy policy = routing::Policy::kDefault;
    bool tiers = true;
    /// Of each machine, for blocks that its workers' pools may have given up; none: no such memory.
    std::optional<SharedCacheOptions> dram;
    /// Cache nodes that all workers share; none: there are none.
    std::optional<SharedCacheOptions> nodes;
    /// So many share a machine: they slow each other down, and are taken to fail together.
    std::uint32_t per_machine = 1;
    Duration probe_every = std::chrono::seconds(1);
    /// A worker that computes nothing for so long, though it has work, is not ready.
    Duration stall_time = std::chrono::seconds(15);
    std::uint64_t seed = 0;
};

class Fleet {
public:
    /// Workers are numbered from 0: full, encode, prefill, decode. All are ready at once. `on_ready`
    /// is called when one takes requests again.
    Fleet(EventQueue& queue, const FleetOptions& options, std::function<void()> on_ready);
    ~Fleet();
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }
    [[nodiscard]] SimEngine& engine(routing::WorkerIndex worker) { return *places_[worker].engine; }
    [[nodiscard]] routing::Registry& registry() { return registry_; }
    /// Null if there are no cache nodes.
    [[nodiscard]] const SharedCache* nodes() const { return nodes_.get(); }
    [[nodiscard]] bool splits() const { return options_.prefill > 0 && options_.decode > 0; }
    /// Requests that the workers hold together, as the gateway reckons (NativePool::capacity).
    [[nodiscard]] std::size_t room() const;
    [[nodiscard]] routing::LegPhase phase(routing::WorkerIndex worker) const {
        return places_[worker].phase;
    }

    /// A leg that began then broke.
    void report_fault(routing::WorkerIndex worker, dispatch::LegFault fault, Time began);
    void report_success(routing::WorkerIndex worker, Time began);

    /// It is drained: once nothing runs there any more it is away for `downtime`, and then back.
    void restart_when_empty(routing::WorkerIndex worker, Duration downtime);

    /// Ends the probes, so that the queue can run empty.
    void stop() { stopped_ = true; }

private:
    struct Place {
        std::unique_ptr<SimEngine> engine;
        routing::LegPhase phase = routing::LegPhase::kFull;
        std::uint64_t known_epoch = 1;  ///< Of the process that the gateway talks to.
        bool feeding = false;           ///< Its cache events are on their way.
        bool kept_out = false;          ///< Ready, but its breaker lets nobody in.
    };

    void add(routing::LegPhase phase, std::uint32_t count);
    void probe(routing::WorkerIndex worker);
    void ask(routing::WorkerIndex worker);
    void feed(routing::WorkerIndex worker);
    void add_nodes();
    void feed_nodes();

    EventQueue& queue_;
    FleetOptions options_;
    std::function<void()> on_ready_;
    routing::Registry registry_;
    std::unique_ptr<SharedCache> nodes_;  ///< Outlives the engines.
    routing::WorkerIndex store_ = 0;      ///< Of the nodes, all together.
    struct NodeEvent {
        BlockKey key = 0;
        bool stored = false;
    };
    std::vector<NodeEvent> node_events_;  ///< On their way.
    std::vector<Place> places_;
    bool stopped_ = false;
};

}  // namespace sluice::sim
