#pragma once

// What the endpoints of a worker share. Belongs to the loop's thread.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "net/event_loop.h"
#include "port/load_report.h"
#include "port/server_info.h"
#include "worker/block_places.h"
#include "worker/generation.h"
#include "worker/kv_publisher.h"
#include "worker/kv_transfer.h"
#include "worker/step_watch.h"
#include "worker/worker_metrics.h"

namespace sluice::worker {

/// One engine of a worker, with a pool and a queue of its own.
struct Rank {
    explicit Rank(std::size_t events_kept) : events(events_kept) {}

    kvnode::KvEventLog events;
    BlockPlaces places{events};  ///< Outlives the engine, which tells it.
    std::unique_ptr<engine::Engine> engine;
    std::unique_ptr<kvnode::KvEventFeed> feed;
    std::size_t live = 0;  ///< Generations.
    StepWatch watch{kStallTime};

    /// Far longer than a step takes.
    static constexpr std::chrono::milliseconds kStallTime{15'000};
};

struct Service {
    net::EventLoop& loop;
    port::ServerInfo about;  ///< What the engine can't know of itself.
    std::chrono::milliseconds heartbeat;
    port::EngineState state = port::EngineState::kLoading;  ///< Never kStalled: see `state_now`.
    KvOptions kv_options{};
    WorkerMetrics metrics{};
    KvTransfer kv{loop, kv_options, [this](KvHolds::End how) {
                      metrics.on_hold_end(how);
                      if (on_work_end) on_work_end();
                  }};
    std::vector<std::unique_ptr<Rank>> ranks{};  ///< Empty while the model is loading.
    KvPublisher publisher{
        {.loop = loop,
         .tiers = kv.cache.tiers(),
         .tasks = kv.cache.tasks(),
         .on_stored = [this](const std::string& tier,
                             kvnode::Stored how) { metrics.on_published(tier, how); },
         .on_dropped = [this](std::size_t blocks) { metrics.on_not_published(blocks); }}};
    /// By request id. Bounded by the engine's own bounds and by the number of connections.
    std::unordered_map<std::string, std::shared_ptr<Generation>> generations{};
    std::function<void()> on_work_end{};  ///< Of a generation, a pull or a hold.

    Service(net::EventLoop& event_loop, port::ServerInfo info, std::chrono::milliseconds silence,
            const KvOptions& options)
        : loop(event_loop), about(std::move(info)), heartbeat(silence), kv_options(options) {}
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    [[nodiscard]] port::EngineState state_now() {
        if (state != port::EngineState::kReady) return state;
        bool stuck = false;
        for (const auto& rank : ranks)
            stuck |= rank->watch.stuck(rank->engine->stats(), std::chrono::steady_clock::now());
        return stuck ? port::EngineState::kStalled : state;
    }

    /// Whether nothing is under way that somebody waits for.
    [[nodiscard]] bool idle() const {
        return generations.empty() && kv.holds.size() == 0 && kv.pulls.empty();
    }
};

}  // namespace sluice::worker
