#include "sim/fleet.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/assert.h"
#include "dispatch/leg_result.h"
#include "trace/trace.h"

namespace sluice::sim {
namespace {

using dispatch::LegFault;
using routing::LegPhase;
using routing::WorkerIndex;

/// How old news of a cache is when it reaches the gateway.
constexpr std::chrono::milliseconds kFeedDelay{20};
/// And the answer to a probe.
constexpr std::chrono::milliseconds kProbeDelay{1};
/// How often a worker that is to restart is looked at.
constexpr std::chrono::milliseconds kDrainLook{100};

std::uint32_t capacity_of(const EngineParameters& engine) {
    // A few more than run wait at the worker, so that a free place is taken in the next step.
    return engine.running_max + std::max(1U, engine.running_max / 8);
}

/// As a worker announces it.
double attention_tokens(const EngineParameters& engine) {
    return engine.prefill_attended_us > 0.0 ? engine.prefill_row_us / engine.prefill_attended_us
                                            : 0.0;
}

}  // namespace

Fleet::Fleet(EventQueue& queue, const FleetOptions& options, std::function<void()> on_ready)
    : queue_(queue),
      options_(options),
      on_ready_(std::move(on_ready)),
      registry_(options.full + options.encode + options.prefill + options.decode + 1,
                {.seed = options.seed + 1, .extent_blocks = SharedCache::kExtent}) {
    if (options.nodes) nodes_ = std::make_unique<SharedCache>(*options.nodes);
    add(LegPhase::kFull, options.full);
    add(LegPhase::kEncode, options.encode);
    add(LegPhase::kPrefill, options.prefill);
    add(LegPhase::kDecode, options.decode);
    add_nodes();
    for (WorkerIndex worker = 0; worker < size(); ++worker) {
        std::vector<const SimEngine*> neighbours;
        const WorkerIndex first = worker - worker % options.per_machine;
        for (WorkerIndex other = first; other < std::min(size(), first + options.per_machine);
             ++other)
            if (other != worker) neighbours.push_back(places_[other].engine.get());
        places_[worker].engine->set_neighbours(std::move(neighbours));
    }
    registry_.set_policy(0, options.policy);
    registry_.set_tiers(0, options.tiers);
    for (WorkerIndex worker = 0; worker < size(); ++worker) {
        registry_.set_events(worker, true);
        static_cast<void>(registry_.set_identity(worker, "model", queue_.now()));
        registry_.set_ready(worker, true, queue_.now());
        queue_.after(Duration::zero(), [this, worker] { probe(worker); });
    }
}

Fleet::~Fleet() = default;

void Fleet::add(LegPhase phase, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t number = size();
        std::string group;
        if (options_.per_machine > 1) group = std::to_string(number / options_.per_machine);
        const auto index =
            registry_.add({.pool = 0,
                           .phase = phase,
                           .capacity = capacity_of(options_.engine),
                           .failure_group = std::move(group),
                           .costs = {.attention_tokens = attention_tokens(options_.engine),
                                     .kv_tokens = std::uint64_t{options_.engine.blocks} *
                                                  trace::kTraceBlockTokens,
                                     .block_tokens = trace::kTraceBlockTokens}});
        SLUICE_ASSERT(index && *index == number);
        std::unique_ptr<CacheTiers> tiers;
        if (options_.dram || nodes_)
            tiers = std::make_unique<CacheTiers>(options_.engine, options_.dram, nodes_.get());
        Place place{
            .engine = std::make_unique<SimEngine>(queue_, options_.engine, std::move(tiers)),
            .phase = phase};
        place.engine->on_blocks([this, number] {
            if (std::exchange(places_[number].feeding, true)) return;
            queue_.after(kFeedDelay, [this, number] { feed(number); });
        });
        places_.push_back(std::move(place));
    }
}

void Fleet::add_nodes() {
    if (!nodes_) return;
    const auto index = registry_.add_store();
    SLUICE_ASSERT(index);
    store_ = *index;
    nodes_->watch([this](BlockKey key, bool stored) {
        if (node_events_.empty()) queue_.after(kFeedDelay, [this] { feed_nodes(); });
        node_events_.push_back({.key = key, .stored = stored});
    });
}

std::size_t Fleet::room() const { return places_.size() * capacity_of(options_.engine); }

// ---- What the gateway learns ----------------------------------------------------------------------

void Fleet::probe(WorkerIndex worker) {
    if (stopped_) return;
    ask(worker);
    queue_.after(options_.probe_every, [this, worker] { probe(worker); });
}

void Fleet::ask(WorkerIndex worker) {
    Place& place = places_[worker];
    const SimEngine& engine = *place.engine;
    const Time now = queue_.now();
    const bool stalled = engine.last_progress() + options_.stall_time <= now;
    if (!engine.up() || stalled) return registry_.set_ready(worker, false, now);
    if (std::exchange(place.known_epoch, engine.epoch()) != engine.epoch())
        registry_.on_restart(worker, now);
    const char* const model = engine.other_model() ? "other model" : "model";
    if (!registry_.set_identity(worker, model, now)) return registry_.set_ready(worker, false, now);
    const auto requests = static_cast<std::uint32_t>(engine.running() + engine.waiting());
    const double held = place.engine->cache().held();
    registry_.report(worker, {.requests = requests, .kv_share = held / options_.engine.blocks},
                     now);
    const bool was_ready = registry_.ready(worker);
    if (!was_ready) registry_.set_ready(worker, true, now);
    const bool takes = registry_.takes_requests(worker, now);
    const bool kept_out = std::exchange(place.kept_out, !takes);
    if (takes && (kept_out || !was_ready) && on_ready_) on_ready_();
}

void Fleet::feed(WorkerIndex worker) {
    Place& place = places_[worker];
    place.feeding = false;
    std::vector<BlockKey> keys;
    auto last = BlockCache::Event::Kind::kCleared;
    const auto flush = [&] {
        if (last == BlockCache::Event::Kind::kStored) registry_.index().stored(worker, keys);
        if (last == BlockCache::Event::Kind::kRemoved) registry_.index().removed(worker, keys);
        keys.clear();
    };
    for (const BlockCache::Event& event : place.engine->cache().take_events()) {
        if (event.kind != last) flush();
        last = event.kind;
        if (event.kind == BlockCache::Event::Kind::kCleared) {
            registry_.index().cleared(worker);
        } else {
            keys.push_back(event.key);
        }
    }
    flush();
}

void Fleet::feed_nodes() {
    for (const NodeEvent& event : std::exchange(node_events_, {})) {
        if (event.stored) {
            registry_.index().stored(store_, {&event.key, 1});
        } else {
            registry_.index().removed(store_, {&event.key, 1});
        }
    }
}

void Fleet::report_fault(WorkerIndex worker, LegFault fault, Time began) {
    const Time now = queue_.now();
    registry_.on_result(worker, dispatch::leg_result(fault), began, now);
    if (!dispatch::may_be_gone(fault)) return;
    // What shares its process, or its power, may be gone with it: all of them are asked.
    for (const WorkerIndex each : registry_.failure_group(worker)) {
        registry_.set_ready(each, false, now);
        queue_.after(kProbeDelay, [this, each] { ask(each); });
    }
}

void Fleet::restart_when_empty(WorkerIndex worker, Duration downtime) {
    SimEngine& engine = *places_[worker].engine;
    const bool busy = registry_.load(worker).requests > 0 || engine.holds() > 0;
    if (busy) {
        queue_.after(kDrainLook,
                     [this, worker, downtime] { restart_when_empty(worker, downtime); });
        return;
    }
    engine.crash(downtime);
    queue_.after(downtime, [this, worker] {
        registry_.drain(worker, false);
        ask(worker);
    });
}

void Fleet::report_success(WorkerIndex worker, Time began) {
    registry_.on_result(worker, routing::LegResult::kSuccess, began, queue_.now());
}

}  // namespace sluice::sim
