#include "worker/worker_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "worker/abort_handler.h"
#include "worker/answers.h"
#include "worker/generate_handler.h"
#include "worker/status_handlers.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

using std::chrono::steady_clock;

/// Answers that are complete get this long to leave before the connections are cut.
constexpr std::chrono::milliseconds kFlush{1'000};
constexpr std::chrono::milliseconds kFlushLook{5};

using Answer = net::HttpResponse (*)(Service&, const net::HttpRequest&);

/// Every endpoint that answers at once. /generate is the one that does not.
struct Route {
    std::string_view path;
    std::string_view method;
    Answer answer;
};
constexpr std::string_view kGenerate = "/generate";
constexpr auto kRoutes = std::to_array<Route>({
    {"/abort_request", "POST", handle_abort},
    {"/health", "GET", handle_health},
    {"/ready", "GET", handle_ready},
    {"/server_info", "GET", handle_server_info},
    {"/metrics", "GET", handle_metrics},
});

net::HttpResponse wrong_method(const net::HttpRequest& request, std::string_view allowed) {
    net::HttpResponse response =
        error_answer(405, port::kMethodNotAllowed,
                     fmt::format("{} takes {}, not {}", request.path, allowed, request.method));
    response.headers.add("Allow", std::string(allowed));
    return response;
}

bool fits(std::string_view method, std::string_view allowed) {
    return method == allowed || (method == "HEAD" && allowed == "GET");
}

}  // namespace

WorkerServer::WorkerServer(net::EventLoop& loop, WorkerServerOptions& options)
    : service_{.loop = loop, .about = std::move(options.about), .heartbeat = options.heartbeat} {}

Result<std::unique_ptr<WorkerServer>> WorkerServer::listen(net::EventLoop& loop,
                                                           WorkerServerOptions options) {
    options.http.error_body = http_error_answer;
    // One frame may be as large as an event: only what is beyond that is a reader that stands still.
    options.http.stream_backlog_bytes =
        std::max(options.http.stream_backlog_bytes,
                 2 * limits::kSseEventBytes + limits::kPortFrameBacklogBytes);
    std::unique_ptr<WorkerServer> worker(new WorkerServer(loop, options));
    auto server = net::HttpServer::listen(
        loop, std::move(options.http),
        [raw = worker.get()](const std::shared_ptr<net::HttpExchange>& exchange) {
            raw->route(exchange);
        });
    if (!server) return std::unexpected(server.error());
    worker->server_ = std::move(*server);
    return worker;
}

WorkerServer::~WorkerServer() {
    service_.on_generation_end = nullptr;
    if (service_.engine) service_.engine->stop();
    service_.generations.clear();
    server_.reset();
}

Result<void> WorkerServer::serve(std::shared_ptr<const engine::Model> model,
                                 engine::EngineOptions options) {
    SLUICE_ASSERT(!service_.engine);
    options.on_step = [metrics = &service_.metrics,
                       also = std::move(options.on_step)](const engine::StepReport& step) {
        metrics->on_step(step);
        if (also) also(step);
    };
    auto engine = engine::Engine::create(std::move(model), std::move(options));
    if (!engine) return std::unexpected(engine.error());
    service_.engine = std::move(*engine);
    service_.engine->start();
    if (service_.state == port::EngineState::kLoading) {
        service_.state = port::EngineState::kReady;
    }
    return {};
}

port::ServerInfo WorkerServer::info() const {
    return service_.engine ? describe(*service_.engine, service_.about) : service_.about;
}

void WorkerServer::route(const std::shared_ptr<net::HttpExchange>& exchange) {
    const net::HttpRequest& request = exchange->request();
    if (request.path == kGenerate) {
        if (request.method == "POST") return handle_generate(service_, exchange);
        return exchange->respond(wrong_method(request, "POST"));
    }
    const auto* const route = std::ranges::find(kRoutes, request.path, &Route::path);
    if (route == kRoutes.end()) {
        return exchange->respond(
            error_answer(404, port::kNotFound, fmt::format("there is no {} here", request.path)));
    }
    if (!fits(request.method, route->method)) {
        return exchange->respond(wrong_method(request, route->method));
    }
    exchange->respond(route->answer(service_, request));
}

// The port stays open while requests finish: drains are watched at /ready, aborts still arrive.
void WorkerServer::stop(std::chrono::milliseconds grace, std::function<void()> on_stopped) {
    const bool first = service_.state != port::EngineState::kStopping;
    service_.state = port::EngineState::kStopping;
    if (first) {
        on_stopped_ = std::move(on_stopped);
        service_.on_generation_end = [this] { check_drained(); };
    }
    grace_ = service_.loop.call_after(grace, [this] { abort_all(); });
    if (first) check_drained();
}

void WorkerServer::abort_all() {
    for (const auto& [rid, generation] : service_.generations) {
        generation->abort("the worker is stopping");
    }
}

void WorkerServer::check_drained() {
    if (!service_.generations.empty()) return;
    grace_.cancel();
    server_->stop_accepting();
    wait_for_answers(steady_clock::now() + kFlush);
}

void WorkerServer::wait_for_answers(steady_clock::time_point until) {
    flush_ = service_.loop.call_after(kFlushLook, [this, until] {
        if (server_->connections() > 0 && steady_clock::now() < until) {
            return wait_for_answers(until);
        }
        if (const auto done = std::exchange(on_stopped_, nullptr)) done();
    });
}

}  // namespace sluice::worker
