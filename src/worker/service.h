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
#include "worker/worker_metrics.h"

namespace sluice::worker {

struct Service {
    net::EventLoop& loop;
    port::ServerInfo about;  ///< What the engine can't know of itself.
    std::chrono::milliseconds heartbeat;
    port::EngineState state = port::EngineState::kLoading;
    WorkerMetrics metrics{};
    std::unique_ptr<engine::Engine> engine{};  ///< Null while the model is loading.
    /// By request id. Bounded by the engine's own bounds and by the number of connections.
    std::unordered_map<std::string, std::shared_ptr<Generation>> generations{};
    std::function<void()> on_generation_end{};
};

}  // namespace sluice::worker
