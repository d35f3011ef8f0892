#pragma once

// One running request of a worker: from its place in the engine to the last byte of its answer.
//
// Whoever stands to gain nothing more from it (the client left, its deadline passed, somebody
// aborted it) has it aborted in the engine, and it lives on until the engine confirms: as long as a
// Generation lives its id is taken and its blocks may be; once it has ended, nothing is.
//
// A reader that falls behind gets fewer and larger frames, never a longer queue.
//
// Everything runs on the loop's thread; the engine's only fills the mailbox.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "port/generate.h"
#include "worker/mailbox.h"
#include "worker/worker_metrics.h"

namespace sluice::worker {

class Generation : public std::enable_shared_from_this<Generation> {
public:
    /// What it needs of its worker, which outlives it.
    struct Host {
        net::EventLoop& loop;
        engine::Engine& engine;
        WorkerMetrics& metrics;
        std::chrono::milliseconds heartbeat;  ///< Longest silence of a stream.
        std::function<void(const std::string& rid)> on_end;
    };

    Generation(Host host, std::shared_ptr<net::HttpExchange> exchange,
               const port::GenerateRequest& request);

    /// Hands the request to the engine and begins the answer. On an error, which is the engine's,
    /// nothing was answered and the object is of no further use.
    [[nodiscard]] Result<void> start(port::GenerateRequest request);

    /// Ends it before the engine's next step. The client gets what there is, and a finish reason of
    /// type abort with `reason`; the first reason counts.
    void abort(std::string reason);

private:
    void begin();
    void on_output();
    void write(engine::Output output);
    void answer(engine::Output output);
    void on_client_gone();
    void beat();
    void note_admission(const engine::Output& output);

    Host host_;
    std::shared_ptr<net::HttpExchange> exchange_;  ///< Null once the client is gone.
    const std::string rid_;
    const bool stream_;
    const std::uint64_t deadline_ms_;
    const std::shared_ptr<Mailbox> mailbox_;
    port::GenerateFrame last_;  ///< Counters of the last frame, which a heartbeat repeats.
    std::chrono::steady_clock::time_point written_;
    std::uint64_t steps_ = 0;  ///< Of the engine, at the last heartbeat.
    std::string abort_reason_;
    bool admitted_ = false;
    net::Timer heartbeat_;
    net::Timer deadline_;
    net::Timer retry_;
};

}  // namespace sluice::worker
