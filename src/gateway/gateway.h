#pragma once

// The gateway's server shell: two HTTP servers on one event loop (clients, and the operator's admin
// address), one handler per endpoint, and the requests that are being answered.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/metrics.h"
#include "base/task_pool.h"
#include "gateway/generation.h"
#include "gateway/request_preparer.h"
#include "gateway/worker_set.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/http_server.h"

namespace sluice::gateway {

struct GatewayOptions {
    net::HttpServerOptions listen;
    net::HttpServerOptions admin;
    std::string pool = "default";
    PoolProfile profile;
    std::vector<std::string> workers;  ///< "http://127.0.0.1:40001"
    std::size_t queue_max = limits::kQueuedRequests;
    std::chrono::milliseconds deadline = std::chrono::seconds(limits::kRequestSeconds);
    std::function<void()> on_ready = [] {};  ///< Called once, when a worker can answer.
};

class Gateway {
public:
    /// Binds both addresses; an error names the one that is taken.
    [[nodiscard]] static Result<std::unique_ptr<Gateway>> create(net::EventLoop& loop,
                                                                 GatewayOptions options,
                                                                 text::Tokenizer tokenizer);
    ~Gateway();
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    [[nodiscard]] std::uint16_t port() const { return server_->port(); }
    [[nodiscard]] std::uint16_t admin_port() const { return admin_->port(); }

    /// Takes no new requests; calls `on_drained` when the running ones have ended, or were ended
    /// after `grace`.
    void drain(std::chrono::milliseconds grace, std::function<void()> on_drained);

    [[nodiscard]] std::size_t live_requests() const { return live_.size(); }
    [[nodiscard]] std::size_t queued_requests() const { return queue_.size(); }
    [[nodiscard]] const metrics::Registry& metrics() const { return registry_; }

private:
    using Exchange = std::shared_ptr<net::HttpExchange>;
    struct Route {
        std::string method;
        void (Gateway::*handle)(const Exchange&);
    };
    using Routes = std::map<std::string, Route, std::less<>>;

    Gateway(net::EventLoop& loop, GatewayOptions options, text::Tokenizer tokenizer);

    static const Routes& client_routes();
    static const Routes& admin_routes();
    void dispatch(const Routes& routes, const Exchange& exchange);

    void handle_chat(const Exchange& exchange) { generate(Endpoint::kChat, exchange); }
    void handle_completions(const Exchange& exchange) {
        generate(Endpoint::kCompletions, exchange);
    }
    void handle_models(const Exchange& exchange);
    void handle_model(const Exchange& exchange, std::string_view name);
    void handle_health(const Exchange& exchange);
    void handle_ready(const Exchange& exchange);
    void handle_metrics(const Exchange& exchange);
    void handle_status(const Exchange& exchange);

    void generate(Endpoint endpoint, const Exchange& exchange);
    [[nodiscard]] Result<RequestHeaders> read_headers(const net::HttpRequest& request) const;
    [[nodiscard]] bool wait_for_worker(std::shared_ptr<Generation> generation);
    void serve_queue();
    void abandon_all();
    void on_done(Generation& generation);

    net::EventLoop& loop_;
    GatewayOptions options_;
    metrics::Registry registry_;
    GatewayProbe probe_;
    RequestPreparer preparer_;
    net::HttpClient client_;
    WorkerSet workers_;
    GenerationServices services_;
    TaskPool tasks_;  ///< Prepares long prompts.
    std::map<Generation*, std::shared_ptr<Generation>> live_;
    std::deque<std::shared_ptr<Generation>> queue_;
    std::function<void()> on_drained_;
    net::Timer grace_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);  ///< Expires with this object.
    std::unique_ptr<net::HttpServer> server_;
    std::unique_ptr<net::HttpServer> admin_;
};

}  // namespace sluice::gateway
