#include "kvnode/node_http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kvnode/kv_event_query.h"
#include "kvnode/node_answers.h"
#include "kvnode/node_orders.h"
#include "net/web_page.h"
#include "port/port_error.h"

namespace sluice::kvnode {
namespace {

struct Order {
    std::string_view path;
    void (*answer)(NodeService& service, const Exchange& exchange);
};
constexpr auto kOrders = std::to_array<Order>({
    {"/kv/bounds", answer_kv_bounds},
    {"/kv/drop", answer_kv_drop},
    {"/kv/pin", answer_kv_pin},
    {"/kv/verify", answer_kv_verify},
});

net::HttpResponse wrong_method(const net::HttpRequest& request, std::string_view allowed) {
    net::HttpResponse response =
        error_answer(405, port::kMethodNotAllowed,
                     fmt::format("{} takes {}, not {}", request.path, allowed, request.method));
    response.headers.add("Allow", std::string(allowed));
    return response;
}

}  // namespace

NodeHttp::NodeHttp(NodeService& service)
    : service_(service),
      feed_(
          service.loop,
          [&service](const std::function<void(KvEventFeed::Snapshot)>& done) {
              service.store.snapshot(done);
          },
          service.store.events()) {}

Result<std::unique_ptr<NodeHttp>> NodeHttp::listen(NodeService& service,
                                                   net::HttpServerOptions options) {
    options.error_body = http_error_answer;
    std::unique_ptr<NodeHttp> http(new NodeHttp(service));
    auto server = net::HttpServer::listen(
        service.loop, std::move(options),
        [raw = http.get()](const Exchange& exchange) { raw->route(exchange); });
    if (!server) return std::unexpected(server.error());
    http->server_ = std::move(*server);
    return http;
}

void NodeHttp::stop_accepting() { server_->stop_accepting(); }

bool NodeHttp::may_order(const net::HttpRequest& request) const {
    if (!service_.password) return true;
    constexpr std::string_view kBearer = "Bearer ";
    const auto field = request.headers.find("Authorization");
    if (!field || !field->starts_with(kBearer)) return false;
    return equal_in_constant_time(sha256(field->substr(kBearer.size())), *service_.password);
}

void NodeHttp::route(const Exchange& exchange) {
    const net::HttpRequest& request = exchange->request();
    const auto* const order = std::ranges::find(kOrders, request.path, &Order::path);
    if (order != kOrders.end()) {
        if (request.method != "POST") return exchange->respond(wrong_method(request, "POST"));
        if (net::is_from_web_page(request)) {
            return exchange->respond(
                error_answer(403, port::kInvalidRequest, std::string(net::kNoWebPages)));
        }
        if (!may_order(request)) {
            return exchange->respond(
                error_answer(401, port::kInvalidRequest, "orders need the node's password"));
        }
        return order->answer(service_, exchange);
    }
    constexpr std::array<std::string_view, 4> kQuestions{"/health", "/metrics", "/kv_events",
                                                         "/kv/status"};
    if (std::ranges::find(kQuestions, request.path) == kQuestions.end()) {
        return exchange->respond(
            error_answer(404, port::kNotFound, fmt::format("there is no {} here", request.path)));
    }
    if (request.method != "GET" && request.method != "HEAD")
        return exchange->respond(wrong_method(request, "GET"));
    if (request.path == "/kv_events") return answer_events(exchange);
    if (request.path == "/kv/status") return answer_kv_status(service_, exchange);
    if (request.path == "/health")
        return exchange->respond(net::HttpResponse::json(200, R"({"status":"ok"})"));
    net::HttpResponse metrics = net::HttpResponse::text(200, metrics_.text(service_));
    metrics.headers.set("Content-Type", std::string(metrics::Registry::kContentType));
    exchange->respond(std::move(metrics));
}

void NodeHttp::answer_events(const Exchange& exchange) {
    const auto query = parse_kv_event_query(exchange->request().query);
    if (!query) {
        return exchange->respond(error_answer(400, port::kInvalidRequest, query.error().message(),
                                              query.error().place()));
    }
    if (query->rank != 0) {
        return exchange->respond(
            error_answer(400, port::kInvalidRequest, "a cache node has one rank, 0", "rank"));
    }
    feed_.answer(*query, exchange);
}

}  // namespace sluice::kvnode
