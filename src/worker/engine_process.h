#pragma once

// The engine as a process: listens, loads its model, answers until a signal says stop.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "engine/engine.h"
#include "port/server_info.h"
#include "worker/kv_options.h"

namespace sluice::worker {

struct WorkerOptions {
    std::filesystem::path model;
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  ///< 0 takes a free one.
    int listen_fd = -1;      ///< A listening socket from the parent; replaces address and port.
    engine::EngineOptions engine;
    std::size_t ranks = 1;  ///< Engines over one model; at most limits::kDpRanks.
    KvOptions kv;
    /// What the engine can't know of itself: tokenizer_digest, failure_group, version, ...
    port::ServerInfo about;
    std::chrono::milliseconds grace{30'000};  ///< How long running requests may take after a stop.
    /// The port is open; /ready answers 503. On the loop's thread, as is the next.
    std::function<void(std::uint16_t port)> on_listening;
    /// Requests are taken.
    std::function<void(std::uint16_t port, const port::ServerInfo& info)> on_ready;
};

/// Runs on this thread until SIGTERM or SIGINT, and returns which one it was; a second one cuts the
/// grace period short. An error if it can't start: the port is taken (`kIo`), the model can't be
/// loaded, or the engine's options make no sense.
[[nodiscard]] Result<int> run_worker(WorkerOptions options);

}  // namespace sluice::worker
