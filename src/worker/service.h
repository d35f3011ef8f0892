#pragma once

// What the endpoints of a worker share. Belongs to the loop's thread.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "engine/engine.h"
#include "net/event_loop.h"
#include "port/load_report.h"
#include "port/server_info.h"
#include "worker/generation.h"
#include "worker/step_watch.h"
#include "worker/worker_metrics.h"

namespace sluice::worker {

struct Service {
    net::EventLoop& loop;
    port::ServerInfo about;  ///< What the engine can't know of itself.
    std::chrono::milliseconds heartbeat;
    port::EngineState state = port::EngineState::kLoading;  ///< Never kStalled: see `state_now`.
    WorkerMetrics metrics{};
    std::unique_ptr<engine::Engine> engine{};  ///< Null while the model is loading.
    /// By request id. Bounded by the engine's own bounds and by the number of connections.
    std::unordered_map<std::string, std::shared_ptr<Generation>> generations{};
    std::function<void()> on_generation_end{};
    StepWatch watch{kStallTime};

    /// Far longer than a step takes.
    static constexpr std::chrono::milliseconds kStallTime{15'000};

    [[nodiscard]] port::EngineState state_now() {
        if (state != port::EngineState::kReady) return state;
        return watch.stuck(engine->stats(), std::chrono::steady_clock::now())
                   ? port::EngineState::kStalled
                   : state;
    }
};

}  // namespace sluice::worker
