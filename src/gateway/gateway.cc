#include "gateway/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "gateway/answer_writer.h"
#include "gateway/status_report.h"
#include "protocol/json_writer.h"

namespace sluice::gateway {
namespace {

using protocol::ApiError;
using protocol::ApiErrorCode;

/// The client's name for a request, where it is one that can be logged and sent back.
std::string request_id(const net::HttpRequest& request) {
    const std::string_view id = request.headers.find("x-request-id").value_or("");
    const bool good = id.size() <= limits::kRequestIdBytes &&
                      std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7F; });
    return good ? std::string(id) : std::string();
}

/// An error before there is a Generation to tell it.
void refuse(net::HttpExchange& exchange, const ApiError& error, net::HttpHeaders headers = {}) {
    if (std::string id = request_id(exchange.request()); !id.empty())
        headers.set("x-request-id", std::move(id));
    respond_error(exchange, error, headers);
}

/// Bodies above this are prepared beside the event loop: encoding them takes milliseconds.
constexpr std::size_t kInlineBodyBytes = 16 * 1024;
constexpr std::size_t kPreparingThreads = 1;
constexpr std::size_t kPreparingMax = 256;
constexpr std::string_view kModelsPath = "/v1/models";
constexpr std::string_view kModelsPrefix = "/v1/models/";

}  // namespace

Result<std::unique_ptr<Gateway>> Gateway::create(net::EventLoop& loop, GatewayOptions options,
                                                 text::Tokenizer tokenizer) {
    std::unique_ptr<Gateway> gateway(new Gateway(loop, std::move(options), std::move(tokenizer)));
    Gateway* self = gateway.get();
    auto server = net::HttpServer::listen(
        loop, self->options_.listen,
        [self](const Exchange& exchange) { self->dispatch(client_routes(), exchange); });
    if (!server) return std::unexpected(server.error());
    auto admin = net::HttpServer::listen(
        loop, self->options_.admin,
        [self](const Exchange& exchange) { self->dispatch(admin_routes(), exchange); });
    if (!admin) return std::unexpected(admin.error());
    gateway->server_ = std::move(*server);
    gateway->admin_ = std::move(*admin);
    gateway->workers_.start();
    return gateway;
}

Gateway::Gateway(net::EventLoop& loop, GatewayOptions options, text::Tokenizer tokenizer)
    : loop_(loop),
      options_(std::move(options)),
      probe_(registry_, options_.pool),
      preparer_(std::move(tokenizer), options_.profile),
      client_(loop),
      workers_(loop, client_, options_.workers, [this] { serve_queue(); }),
      services_{.loop = loop,
                .client = client_,
                .workers = workers_,
                .probe = probe_,
                .preparer = preparer_,
                .pool = options_.pool,
                .wait_for_worker =
                    [this](std::shared_ptr<Generation> generation) {
                        return wait_for_worker(std::move(generation));
                    },
                .on_done = [this](Generation& generation) { on_done(generation); }},
      tasks_(kPreparingThreads, kPreparingMax) {}

// Requests end before what they hold on to does.
Gateway::~Gateway() { abandon_all(); }

// Each request leaves live_ as it ends.
void Gateway::abandon_all() {
    while (!live_.empty()) live_.begin()->second->abandon();
}

const Gateway::Routes& Gateway::client_routes() {
    static const Routes routes = {
        {"/v1/chat/completions", {"POST", &Gateway::handle_chat}},
        {"/v1/completions", {"POST", &Gateway::handle_completions}},
        {std::string(kModelsPath), {"GET", &Gateway::handle_models}},
        {"/health", {"GET", &Gateway::handle_health}},
        {"/ready", {"GET", &Gateway::handle_ready}},
    };
    return routes;
}

const Gateway::Routes& Gateway::admin_routes() {
    static const Routes routes = {
        {"/metrics", {"GET", &Gateway::handle_metrics}},
        {"/health", {"GET", &Gateway::handle_health}},
        {"/ready", {"GET", &Gateway::handle_ready}},
        {"/admin/status", {"GET", &Gateway::handle_status}},
    };
    return routes;
}

void Gateway::dispatch(const Routes& routes, const Exchange& exchange) {
    const net::HttpRequest& request = exchange->request();
    const bool names_model = &routes == &client_routes() && request.path.starts_with(kModelsPrefix);
    const auto route = routes.find(names_model ? kModelsPath : std::string_view(request.path));
    if (route == routes.end()) {
        return refuse(*exchange, {.code = ApiErrorCode::kNotFound,
                                  .message = "there is nothing at " + request.path,
                                  .param = {}});
    }
    const std::string& method = route->second.method;
    if (request.method != method && !(method == "GET" && request.method == "HEAD")) {
        return respond_error(
            *exchange,
            {.code = ApiErrorCode::kMethodNotAllowed,
             .message = fmt::format("{} takes {}, not {}", request.path, method, request.method),
             .param = {}},
            {{"Allow", method == "GET" ? "GET, HEAD" : method}});
    }
    if (names_model)
        return handle_model(exchange, std::string_view(request.path).substr(kModelsPrefix.size()));
    (this->*route->second.handle)(exchange);
}

Result<RequestHeaders> Gateway::read_headers(const net::HttpRequest& request) const {
    RequestHeaders headers{.request_id = request_id(request), .deadline = options_.deadline};
    if (const auto text = request.headers.find("x-sluice-deadline-ms")) {
        std::uint64_t value = 0;
        const auto [end, status] =
            std::from_chars(text->data(), text->data() + text->size(), value);
        if (status != std::errc() || end != text->data() + text->size() || value == 0) {
            return std::unexpected(Error::invalid("must be a whole number of milliseconds above 0",
                                                  "x-sluice-deadline-ms"));
        }
        headers.deadline =
            std::min(headers.deadline,
                     std::chrono::milliseconds(std::min<std::uint64_t>(value, 1'000'000'000)));
    }
    return headers;
}

void Gateway::generate(Endpoint endpoint, const Exchange& exchange) {
    const auto headers = read_headers(exchange->request());
    if (!headers) {
        probe_.finished({}, Outcome::kRejected);
        return refuse(*exchange, protocol::to_api_error(headers.error()));
    }
    const auto generation = std::make_shared<Generation>(services_, exchange, *headers);
    live_.emplace(generation.get(), generation);
    generation->start();
    const std::string& body = exchange->request().body;
    if (body.size() <= kInlineBodyBytes) {
        return generation->on_prepared(preparer_.prepare(endpoint, body));
    }
    // The body stays valid: the task holds the exchange.
    const bool accepted = tasks_.submit([this, endpoint, exchange, generation] {
        auto prepared = std::make_shared<std::expected<PreparedRequest, ApiError>>(
            preparer_.prepare(endpoint, exchange->request().body));
        loop_.post([generation, prepared] { generation->on_prepared(std::move(*prepared)); });
    });
    if (!accepted) {
        generation->on_prepared(std::unexpected(
            ApiError{.code = ApiErrorCode::kQueueFull,
                     .message = "too many long requests are being prepared; try again in a moment",
                     .param = {}}));
    }
}

bool Gateway::wait_for_worker(std::shared_ptr<Generation> generation) {
    if (queue_.size() >= options_.queue_max) return false;
    queue_.push_back(std::move(generation));
    probe_.queue_depth(queue_.size());
    return true;
}

void Gateway::serve_queue() {
    if (auto on_ready = std::exchange(options_.on_ready, nullptr)) on_ready();
    std::deque<std::shared_ptr<Generation>> waiting;
    waiting.swap(queue_);
    for (const auto& generation : waiting) generation->seek_worker();
    probe_.queue_depth(queue_.size());
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
    std::string name;
    protocol::append_json_string(name, options_.profile.model);
    exchange->respond(net::HttpResponse::json(
        200,
        fmt::format(
            R"({{"object":"list","data":[{{"id":{},"object":"model","created":0,"owned_by":"sluice"}}]}})",
            name)));
}

void Gateway::handle_model(const Exchange& exchange, std::string_view name) {
    if (name != options_.profile.model) return refuse(*exchange, protocol::model_not_found(name));
    std::string quoted;
    protocol::append_json_string(quoted, name);
    exchange->respond(net::HttpResponse::json(
        200,
        fmt::format(R"({{"id":{},"object":"model","created":0,"owned_by":"sluice"}})", quoted)));
}

void Gateway::handle_health(const Exchange& exchange) {
    exchange->respond(net::HttpResponse::json(200, R"({"status":"ok"})"));
}

void Gateway::handle_ready(const Exchange& exchange) {
    const bool ready = workers_.any_ready();
    exchange->respond(net::HttpResponse::json(
        ready ? 200 : 503,
        ready ? R"({"ready":true})" : R"({"ready":false,"reason":"no worker can answer yet"})"));
}

void Gateway::handle_metrics(const Exchange& exchange) {
    net::HttpResponse response = net::HttpResponse::text(200, registry_.text());
    response.headers.set("Content-Type", std::string(metrics::Registry::kContentType));
    exchange->respond(std::move(response));
}

void Gateway::handle_status(const Exchange& exchange) {
    exchange->respond(net::HttpResponse::json(200, status_json(options_.pool, workers_)));
}

}  // namespace sluice::gateway
