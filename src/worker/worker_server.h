#pragma once

// The engine process seen from outside: the engine port over HTTP/1.1.
//
// It listens before it has a model, so that whoever started it can ask how far it is (/health 200,
// /ready 503). `serve` gives it the model; `stop` takes no new requests, lets running ones finish,
// and aborts what is left. Everything a request holds is given back however it ends.
//
// Threads: the loop's. The engine computes on one of its own, which the destructor ends. The loop
// outlives the server.

#include <chrono>
#include <functional>
#include <memory>

#include "base/error.h"
#include "engine/engine.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "worker/service.h"

namespace sluice::worker {

struct WorkerServerOptions {
    net::HttpServerOptions http;
    /// Tokenizer, versions, failure group: what the engine can't know of itself.
    port::ServerInfo about;
    /// A stream is never silent for longer while the engine makes steps: the other side sees life.
    std::chrono::milliseconds heartbeat{2'000};
    KvOptions kv;
};

class WorkerServer {
public:
    /// Binds; `kIo` if the port is taken.
    [[nodiscard]] static Result<std::unique_ptr<WorkerServer>> listen(net::EventLoop& loop,
                                                                      WorkerServerOptions options);
    /// Aborts what runs and cuts every connection.
    ~WorkerServer();
    WorkerServer(const WorkerServer&) = delete;
    WorkerServer& operator=(const WorkerServer&) = delete;

    /// Starts `ranks` engines over one model, each with a pool and threads of its own; ready from now
    /// on. Once. The error is that of Engine::create.
    [[nodiscard]] Result<void> serve(const std::shared_ptr<const engine::Model>& model,
                                     engine::EngineOptions options, std::size_t ranks = 1);

    /// Requests that run, and blocks that wait to be fetched, after `grace` are given up. Calls `on_stopped` once all answers are out.
    /// Called again, only the grace period changes.
    void stop(std::chrono::milliseconds grace, std::function<void()> on_stopped);

    [[nodiscard]] std::uint16_t port() const { return server_->port(); }
    /// Null until `serve`.
    [[nodiscard]] const engine::Engine* engine(std::size_t rank = 0) const {
        return rank < service_.ranks.size() ? service_.ranks[rank]->engine.get() : nullptr;
    }
    /// Prefilled sequences that wait to be fetched.
    [[nodiscard]] std::size_t holds() const { return service_.kv.holds.size(); }
    /// Whether no block is on its way into other tiers.
    [[nodiscard]] bool published() const { return service_.publisher.idle(); }
    [[nodiscard]] port::ServerInfo info() const;

private:
    WorkerServer(net::EventLoop& loop, WorkerServerOptions& options);
    void route(const std::shared_ptr<net::HttpExchange>& exchange);
    void abort_all();
    void check_drained();
    void wait_for_answers(std::chrono::steady_clock::time_point until);

    Service service_;
    std::unique_ptr<net::HttpServer> server_;
    std::function<void()> on_stopped_;
    net::Timer grace_;
    net::Timer flush_;
};

}  // namespace sluice::worker
