#include "gateway/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/assert.h"
#include "gateway/answer_writer.h"
#include "gateway/copied_exchange.h"
#include "gateway/random_id.h"
#include "gateway/stable_steering.h"
#include "gateway/status_report.h"
#include "gateway/worker_endpoints.h"
#include "protocol/json_writer.h"

namespace sluice::gateway {
namespace {

constexpr std::size_t kPreparingThreads = 1;
constexpr std::size_t kPreparingMax = 256;
/// Kept open to each worker between requests.
constexpr std::size_t kIdleConnections = 512;

/// An error before there is a Generation to tell it.
void refuse(net::HttpExchange& exchange, const protocol::ApiError& error,
            net::HttpHeaders headers = {}) {
    if (std::string id = client_request_id(exchange.request()); !id.empty())
        headers.set("x-request-id", std::move(id));
    respond_error(exchange, error, headers);
}

std::string model_object(std::string_view name) {
    std::string quoted;
    protocol::append_json_string(quoted, name);
    return fmt::format(R"({{"id":{},"object":"model","created":0,"owned_by":"sluice"}})", quoted);
}

}  // namespace

Result<std::unique_ptr<Gateway>> Gateway::create(net::EventLoop& loop, GatewayOptions options) {
    auto members = KvMembers::open(options.kv_members_file, options.kv_nodes);
    if (!members) return std::unexpected(members.error());
    std::unique_ptr<Gateway> gateway(new Gateway(loop, std::move(options), std::move(*members)));
    Gateway* self = gateway.get();
    auto server =
        net::HttpServer::listen(loop, self->options_.listen, [self](const Exchange& exchange) {
            if (self->let_in(exchange, Door::kClients)) self->client_routes_.dispatch(exchange);
        });
    if (!server) return std::unexpected(server.error());
    auto admin =
        net::HttpServer::listen(loop, self->options_.admin, [self](const Exchange& exchange) {
            if (self->let_in(exchange, Door::kAdmins)) self->admin_routes_.dispatch(exchange);
        });
    if (!admin) return std::unexpected(admin.error());
    gateway->server_ = std::move(*server);
    gateway->admin_ = std::move(*admin);
    for (const auto& pool : gateway->pools_) pool->start();
    gateway->directory_.start();
    gateway->kv_feeds_.start();
    gateway->push_kv_bounds();
    return gateway;
}

Gateway::Gateway(net::EventLoop& loop, GatewayOptions options, KvMembers members)
    : loop_(loop),
      options_(std::move(options)),
      probe_(registry_),
      client_(loop, {.idle_connections_per_host = kIdleConnections, .ca_file = options_.ca_file}),
      resumes_(loop, pools_, probe_, options_.resume_tokens),
      directory_(loop, client_, options_.etcd),
      kv_members_(std::move(members)),
      kv_push_(loop, client_, kv_members_),
      kv_feeds_(loop, client_, pools_.registry(), routing_probe_, kv_members_),
      tasks_(kPreparingThreads, kPreparingMax) {
    options_.observers.push_back(kv_history_);
    add_pools();
    steering_ = options_.make_steering ? options_.make_steering(pools_)
                                       : std::make_unique<StableSteering>(*stable_);
    services_ = std::make_unique<GenerationServices>(GenerationServices{
        .loop = loop,
        .pools = pools_,
        .probe = probe_,
        .resumes = resumes_,
        .quarantine = quarantine_,
        .steering = *steering_,
        .admission = options_.admission.get(),
        .headers_after = options_.headers_after,
        .move_every = options_.faults.move_every,
        .observers = {},
        .beside_loop =
            [this](std::function<void()> work, std::function<void()> then) {
                return beside_loop(std::move(work), std::move(then));
            },
        .wait_for_worker = [this](Generation& each) { return wait_for_worker(each); },
        .on_room = [this](Pool& pool) { serve_one(pool); },
        .on_done = [this](Generation& each) { on_done(each); }});
    for (const auto& observer : options_.observers) services_->observers.push_back(observer.get());
    if (options_.records) record_probe_ = std::make_unique<RecordProbe>(registry_);
    record_endpoints_ = std::make_unique<RecordEndpoints>(
        loop, options_.records, [this](std::string_view id) { return find(id); });
    record_endpoints_->add_to(admin_routes_);
    add_routes();
    if (options_.admission) options_.admission->attach([this] { return room(); }, registry_);
}

// Requests end before what they hold on to does.
Gateway::~Gateway() {
    abandon_all();
    for (const auto& observer : options_.observers) observer->on_gateway_end();
}

// Each request leaves live_ as it ends.
void Gateway::abandon_all() {
    while (!live_.empty()) live_.begin()->second->abandon();
}

void Gateway::push_kv_bounds() {
    port::KvBoundsOrder bounds;
    for (const auto& [tenant, rules] : options_.caches)
        if (rules.bytes > 0) bounds.tenants[tenant] = rules.bytes;
    kv_bounds_ = std::make_unique<KvBoundsPush>(
        loop_, client_, [this] { return kv_holders(pools_, kv_members_); }, bounds,
        options_.kv_bounds_pace);
}

void Gateway::add_pools() {
    for (NativePoolOptions& options : options_.native_pools) {
        auto workers = std::exchange(options.workers, {});
        for (discovery::WorkerEntry& worker : workers) worker.pool = options.name;
        auto pool = std::make_unique<NativePool>(
            loop_, client_, pools_, routing_probe_, std::move(options),
            NativePoolEvents{.on_ready = [this] { on_pool_ready(); },
                             .on_drain = [this](routing::WorkerIndex each) { evacuate(each); },
                             .on_report =
                                 [this](const std::string& url, const port::LoadReport& load) {
                                     kv_push_.on_report(url, load.kv_epoch);
                                 }});
        directory_.add_pool(*pool);
        directory_.add_static(workers);
        pools_.add(std::move(pool));
    }
    for (UpstreamPoolOptions& pool : options_.upstream_pools) {
        pools_.add(std::make_unique<UpstreamPool>(loop_, client_, pools_, std::move(pool),
                                                  [this] { on_pool_ready(); }));
    }
    SLUICE_ASSERT(pools_.size() > 0);
    stable_ = options_.stable.empty() ? &pools_.at(0) : pools_.find(options_.stable);
    SLUICE_ASSERT(stable_ != nullptr);
}

void Gateway::add_routes() {
    const auto health = [](const Exchange& exchange, std::string_view) {
        exchange->respond(net::HttpResponse::json(200, R"({"status":"ok"})"));
    };
    const auto ready = [this](const Exchange& exchange, std::string_view) {
        handle_ready(exchange);
    };
    for (Router* routes : {&client_routes_, &admin_routes_}) {
        routes->add("GET", "/health", health);
        routes->add("GET", "/ready", ready);
    }
    client_routes_.add("POST", "/v1/chat/completions",
                       [this](const Exchange& exchange, std::string_view) {
                           generate(Endpoint::kChat, exchange);
                       });
    client_routes_.add("POST", "/v1/completions",
                       [this](const Exchange& exchange, std::string_view) {
                           generate(Endpoint::kCompletions, exchange);
                       });
    client_routes_.add("GET", "/v1/models", [this](const Exchange& exchange, std::string_view) {
        handle_models(exchange);
    });
    client_routes_.add(
        "GET", "/v1/models/",
        [this](const Exchange& exchange, std::string_view name) { handle_model(exchange, name); });
    admin_routes_.add("GET", "/admin/status", [this](const Exchange& exchange, std::string_view) {
        exchange->respond(net::HttpResponse::json(200, status_json(*stable_, pools_)));
    });
    add_worker_endpoints(admin_routes_, directory_);
    kv_console_ = std::make_unique<KvConsole>(
        KvConsole::Services{.loop = loop_,
                            .client = client_,
                            .pools = pools_,
                            .members = kv_members_,
                            .push = kv_push_,
                            .history = *kv_history_,
                            .stable = [this]() -> const Pool& { return *stable_; },
                            .caches = options_.caches});
    kv_console_->add_to(admin_routes_);
    admin_routes_.add("GET", "/metrics", [this](const Exchange& exchange, std::string_view) {
        handle_metrics(exchange);
    });
}

bool Gateway::let_in(const Exchange& exchange, Door door) const {
    const net::HttpRequest& request = exchange->request();
    // Whoever watches over processes has no key, and learns nothing here but that one runs.
    const bool everybodys = request.path == "/health" || request.path == "/ready";
    if (options_.access == nullptr || everybodys) return true;
    const auto caller =
        door == Door::kClients ? options_.access->client(request) : options_.access->admin(request);
    if (!caller) refuse(*exchange, caller.error(), {{"WWW-Authenticate", "Bearer"}});
    return caller.has_value();
}

Result<InboundRequest> Gateway::read_request(Endpoint endpoint, const Exchange& exchange) const {
    const net::HttpRequest& request = exchange->request();
    const auto patient = std::make_shared<PatientExchange>(loop_, exchange);
    InboundRequest inbound{
        .endpoint = endpoint,
        .exchange = patient,
        .patient = patient,
        .request_id = client_request_id(request),
        .deadline = options_.deadline,
        .trace = continue_trace(request.headers.find("traceparent")),
        .pinned_pool = std::string(request.headers.find("x-sluice-pool").value_or(""))};
    if (const auto text = request.headers.find("x-sluice-deadline-ms")) {
        std::uint64_t value = 0;
        const auto [end, status] =
            std::from_chars(text->data(), text->data() + text->size(), value);
        if (status != std::errc() || end != text->data() + text->size() || value == 0) {
            return std::unexpected(Error::invalid("must be a whole number of milliseconds above 0",
                                                  "x-sluice-deadline-ms"));
        }
        inbound.deadline =
            std::min(inbound.deadline,
                     std::chrono::milliseconds(std::min<std::uint64_t>(value, 1'000'000'000)));
    }
    if (const auto text = request.headers.find("x-sluice-class")) {
        inbound.retention_asked = retention_from(*text);
        if (!inbound.retention_asked)
            return std::unexpected(Error::invalid("must be agent, chat or none", "x-sluice-class"));
    }
    return inbound;
}

void Gateway::generate(Endpoint endpoint, const Exchange& exchange) {
    auto request = read_request(endpoint, exchange);
    if (!request) {
        return refuse_early(endpoint, exchange, protocol::to_api_error(request.error()));
    }
    const auto generation = std::make_shared<Generation>(*services_, std::move(*request));
    live_.emplace(generation.get(), generation);
    generation->start();
}

std::optional<std::size_t> Gateway::room() const {
    if (!stable_->capacity()) return std::nullopt;
    std::size_t room = 0;
    for (const auto& pool : pools_)
        if (steering_->answers(*pool)) room += pool->capacity().value_or(0);
    return room;
}

void Gateway::refuse_early(Endpoint endpoint, const Exchange& exchange,
                           const protocol::ApiError& error) {
    probe_.finished({}, RequestKind::kText, LengthBucket::kTo16k, Outcome::kRejected);
    RequestReport report{.rid = draw_rid(),
                         .request_id = client_request_id(exchange->request()),
                         .trace = continue_trace(exchange->request().headers.find("traceparent")),
                         .time = std::chrono::system_clock::now(),
                         .endpoint = endpoint,
                         .outcome = Outcome::kRejected,
                         .error_code = std::string(protocol::to_string(error.code)),
                         .status = protocol::http_status(error.code)};
    if (report.request_id.empty()) report.request_id = report.rid;
    for (RequestObserver* observer : services_->observers) observer->on_refused(report);
    refuse(*exchange, error);
}

std::string Gateway::copy(const Generation& original, Pool& pool) {
    if (!pools_.any_ready(pool)) return {};
    InboundRequest request = original.request();
    request.role = RequestRole::kShadow;
    request.trace.parent_id = std::exchange(request.trace.span_id, draw_span_id());
    request.seed = original.report().seed;
    request.exchange = std::make_shared<CopiedExchange>(request.exchange);
    request.patient = nullptr;
    const auto generation = std::make_shared<Generation>(*services_, std::move(request));
    live_.emplace(generation.get(), generation);
    generation->start_copy(original, pool);
    return generation->rid();
}

const Generation* Gateway::find(std::string_view id) const {
    const auto found = std::ranges::find_if(live_, [&](const auto& entry) {
        return entry.first->rid() == id || entry.first->request().request_id == id;
    });
    return found == live_.end() ? nullptr : found->first;
}

void Gateway::abandon(std::string_view rid) {
    const auto found =
        std::ranges::find_if(live_, [&](const auto& entry) { return entry.first->rid() == rid; });
    if (found == live_.end()) return;
    const std::shared_ptr<Generation> generation = found->second;
    generation->abandon();
}

bool Gateway::beside_loop(std::function<void()> work, std::function<void()> then) {
    return tasks_.submit([this, work = std::move(work), then = std::move(then)]() mutable {
        work();
        loop_.post(std::move(then));
    });
}

bool Gateway::wait_for_worker(Generation& generation) {
    // Copies are dropped first; an answer that has begun is never turned away.
    if (generation.request().role == RequestRole::kShadow) return false;
    const bool begun = generation.progress().must_resume();
    if (!begun && queue_.size() >= options_.queue_max) return false;
    // What has begun comes before what has not, each in its order.
    const auto place = std::ranges::find_if(
        queue_, [begun](const auto& each) { return begun && !each->progress().must_resume(); });
    queue_.insert(place, generation.shared_from_this());
    probe_.queue_depth(queue_.size());
    return true;
}

void Gateway::on_pool_ready() {
    if (pools_.any_ready(*stable_))
        if (auto on_ready = std::exchange(options_.on_ready, nullptr)) on_ready();
    serve_queue();
    if (options_.admission) options_.admission->room_changed();
}

void Gateway::replan() {
    serve_queue();
    if (options_.admission) options_.admission->room_changed();
}

void Gateway::serve_queue() {
    std::deque<std::shared_ptr<Generation>> waiting;
    waiting.swap(queue_);
    for (const auto& generation : waiting) generation->worker_available();
    probe_.queue_depth(queue_.size());
}

void Gateway::serve_one(Pool& pool) {
    const auto first =
        std::ranges::find_if(queue_, [&](const auto& each) { return each->pool() == &pool; });
    if (first == queue_.end()) return;
    const std::shared_ptr<Generation> generation = *first;
    queue_.erase(first);
    probe_.queue_depth(queue_.size());
    // Later: the request whose lease ended is still at work.
    loop_.post([generation] { generation->worker_available(); });
}

void Gateway::close_pool(Pool& pool, dispatch::Running running) {
    std::vector<std::shared_ptr<Generation>> all;
    for (const auto& [unused, generation] : live_) all.push_back(generation);
    for (const auto& generation : all) {
        // What can't be moved as it is finishes where it runs.
        const bool stays = !generation->can_go_on_in(*stable_);
        generation->pool_closed(pool.index(), stays ? dispatch::Running::kFinish : running);
    }
    serve_queue();
}

void Gateway::evacuate(routing::WorkerIndex worker) {
    std::vector<std::shared_ptr<Generation>> all;
    for (const auto& [unused, generation] : live_) all.push_back(generation);
    for (const auto& generation : all) generation->worker_closed(worker);
}

void Gateway::on_done(Generation& generation) {
    std::erase_if(queue_, [&](const auto& each) { return each.get() == &generation; });
    probe_.queue_depth(queue_.size());
    // Not destroyed here: its own method is still running.
    const auto entry = live_.extract(&generation);
    loop_.post(
        [this, alive = std::weak_ptr(alive_), keep = entry.empty() ? nullptr : entry.mapped()] {
            if (alive.expired()) return;
            if (live_.empty() && on_drained_) std::exchange(on_drained_, nullptr)();
        });
}

void Gateway::drain(std::chrono::milliseconds grace, std::function<void()> on_drained) {
    server_->stop_accepting();
    admin_->stop_accepting();
    if (live_.empty()) return on_drained();
    on_drained_ = std::move(on_drained);
    grace_ = loop_.call_after(grace, [this] { abandon_all(); });
}

void Gateway::handle_models(const Exchange& exchange) {
    std::set<std::string_view> names;
    for (const auto& pool : pools_)
        if (!pool->model().empty() && steering_->serves(pool->model())) names.insert(pool->model());
    std::string list;
    for (const std::string_view name : names) {
        if (!list.empty()) list += ',';
        list += model_object(name);
    }
    exchange->respond(
        net::HttpResponse::json(200, fmt::format(R"({{"object":"list","data":[{}]}})", list)));
}

void Gateway::handle_model(const Exchange& exchange, std::string_view name) {
    const bool known =
        std::ranges::any_of(pools_, [&](const auto& p) { return p->model() == name; });
    if (name.empty() || !known || !steering_->serves(name))
        return refuse(*exchange, protocol::model_not_found(name));
    exchange->respond(net::HttpResponse::json(200, model_object(name)));
}

void Gateway::handle_ready(const Exchange& exchange) {
    const bool ready = pools_.any_ready(*stable_);
    exchange->respond(net::HttpResponse::json(
        ready ? 200 : 503,
        ready ? R"({"ready":true})" : R"({"ready":false,"reason":"no worker can answer yet"})"));
}

void Gateway::handle_metrics(const Exchange& exchange) {
    probe_.queue_depth(queued_requests());
    routing_probe_.update(pools_);
    if (record_probe_) record_probe_->update(options_.records->stats());
    net::HttpResponse response = net::HttpResponse::text(200, registry_.text());
    response.headers.set("Content-Type", std::string(metrics::Registry::kContentType));
    exchange->respond(std::move(response));
}

}  // namespace sluice::gateway
