#include "worker/worker_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "net/web_page.h"
#include "worker/abort_handler.h"
#include "worker/answers.h"
#include "worker/generate_handler.h"
#include "worker/kv_event_handler.h"
#include "worker/kv_handlers.h"
#include "worker/kv_orders_handlers.h"
#include "worker/status_handlers.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

using std::chrono::steady_clock;

/// Answers that are complete get this long to leave before the connections are cut.
constexpr std::chrono::milliseconds kFlush{1'000};
constexpr std::chrono::milliseconds kFlushLook{5};

using Answer = net::HttpResponse (*)(Service&, const net::HttpRequest&);

/// Every endpoint that answers at once.
struct Route {
    std::string_view path;
    std::string_view method;
    Answer answer;
};
constexpr auto kRoutes = std::to_array<Route>({
    {"/abort_request", "POST", handle_abort},
    {"/kv/release", "POST", handle_kv_release},
    {"/health", "GET", handle_health},
    {"/ready", "GET", handle_ready},
    {"/server_info", "GET", handle_server_info},
    {"/metrics", "GET", handle_metrics},
    {"/kv/status", "GET", handle_kv_status},
    {"/kv/pin", "POST", handle_kv_pin},
    {"/kv/bounds", "POST", handle_kv_bounds},
    {"/kv/nodes", "POST", handle_kv_nodes},
});

/// Those that take their time.
struct SlowRoute {
    std::string_view path;
    std::string_view method;
    void (*answer)(Service&, const std::shared_ptr<net::HttpExchange>&);
};
constexpr auto kSlowRoutes = std::to_array<SlowRoute>({
    {"/generate", "POST", handle_generate},
    {"/kv/pull", "POST", handle_kv_pull},
    {"/kv_events", "GET", handle_kv_events},
    {"/kv/drop", "POST", handle_kv_drop},
    {"/kv/verify", "POST", handle_kv_verify},
});

net::HttpResponse wrong_method(const net::HttpRequest& request, std::string_view allowed) {
    net::HttpResponse response =
        error_answer(405, port::kMethodNotAllowed,
                     fmt::format("{} takes {}, not {}", request.path, allowed, request.method));
    response.headers.add("Allow", std::string(allowed));
    return response;
}

/// Room for a few times as many events as a pool has blocks: who is further behind is better off with
/// a snapshot.
std::size_t events_kept(const engine::EngineOptions& options) {
    const std::size_t blocks = options.pool_tokens / engine::Engine::kBlockTokens;
    return std::clamp<std::size_t>(4 * blocks, 1'024, limits::kKvEventsKept);
}

Result<std::unique_ptr<Rank>> make_rank(net::EventLoop& loop,
                                        const std::shared_ptr<const engine::Model>& model,
                                        engine::EngineOptions options) {
    auto rank = std::make_unique<Rank>(events_kept(options));
    options.block_observer = &rank->places;
    auto engine = engine::Engine::create(model, std::move(options));
    if (!engine) return std::unexpected(engine.error());
    rank->engine = std::move(*engine);
    rank->feed = std::make_unique<kvnode::KvEventFeed>(
        loop,
        [places = &rank->places](const std::function<void(kvnode::KvEventFeed::Snapshot)>& done) {
            done(places->snapshot());
        },
        rank->events);
    return rank;
}

bool fits(std::string_view method, std::string_view allowed) {
    return method == allowed || (method == "HEAD" && allowed == "GET");
}

}  // namespace

WorkerServer::WorkerServer(net::EventLoop& loop, WorkerServerOptions& options)
    : service_(loop, std::move(options.about), options.heartbeat, options.kv) {}

Result<std::unique_ptr<WorkerServer>> WorkerServer::listen(net::EventLoop& loop,
                                                           WorkerServerOptions options) {
    options.http.error_body = http_error_answer;
    // A frame may be as large as an event, and a block larger: only what is beyond that is a reader
    // that stands still. Frames and blocks are not written before most of the last one has left.
    constexpr std::size_t kLargest = std::max(2 * limits::kSseEventBytes, limits::kKvBlockBytes);
    options.http.stream_backlog_bytes =
        std::max(options.http.stream_backlog_bytes, kLargest + 2 * limits::kSseEventBytes);
    std::unique_ptr<WorkerServer> worker(new WorkerServer(loop, options));
    if (auto opened = worker->service_.kv.cache.open_stores(); !opened)
        return std::unexpected(opened.error());
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
    service_.on_work_end = nullptr;
    for (const auto& rank : service_.ranks) rank->engine->stop();
    service_.generations.clear();
    service_.kv.pulls.clear();
    service_.kv.holds.clear();
    server_.reset();
}

Result<void> WorkerServer::serve(const std::shared_ptr<const engine::Model>& model,
                                 engine::EngineOptions options, std::size_t ranks) {
    SLUICE_ASSERT(service_.ranks.empty() && ranks > 0);
    options.on_step = [metrics = &service_.metrics,
                       also = std::move(options.on_step)](const engine::StepReport& step) {
        metrics->on_step(step);
        if (also) also(step);
    };
    const bool compatible = service_.kv_options.compatible_builds;
    service_.about.kv_reuse = compatible ? "compatible" : "exact";
    if (!compatible) options.kv_build = to_hex(version_digest(service_.about)).substr(0, 16);
    std::vector<std::unique_ptr<Rank>> made;
    for (std::size_t i = 0; i < ranks; ++i) {
        auto rank = make_rank(service_.loop, model, options);
        if (!rank) return std::unexpected(rank.error());
        made.push_back(std::move(*rank));
    }
    service_.ranks = std::move(made);
    std::vector<BlockPlaces*> places;
    for (const auto& rank : service_.ranks) places.push_back(&rank->places);
    service_.kv.cache.tell(std::move(places));
    for (const auto& rank : service_.ranks) rank->engine->start();
    if (service_.state == port::EngineState::kLoading) {
        service_.state = port::EngineState::kReady;
    }
    return {};
}

port::ServerInfo WorkerServer::info() const {
    if (service_.ranks.empty()) return service_.about;
    return describe(*service_.ranks.front()->engine, service_.about, service_.ranks.size());
}

void WorkerServer::route(const std::shared_ptr<net::HttpExchange>& exchange) {
    const net::HttpRequest& request = exchange->request();
    if (request.method != "GET" && net::is_from_web_page(request)) {
        return exchange->respond(
            error_answer(403, port::kInvalidRequest, std::string(net::kNoWebPages)));
    }
    const auto* const slow = std::ranges::find(kSlowRoutes, request.path, &SlowRoute::path);
    if (slow != kSlowRoutes.end()) {
        if (request.method == slow->method) return slow->answer(service_, exchange);
        return exchange->respond(wrong_method(request, slow->method));
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
        service_.on_work_end = [this] { check_drained(); };
    }
    grace_ = service_.loop.call_after(grace, [this] { abort_all(); });
    if (first) check_drained();
}

void WorkerServer::abort_all() {
    // Some end at once, and leave the table while it is gone through.
    const auto all = service_.generations;
    for (const auto& [rid, generation] : all) generation->abort("the worker is stopping");
    service_.kv.holds.clear();
}

void WorkerServer::check_drained() {
    if (!service_.idle()) return;
    service_.on_work_end = nullptr;
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
