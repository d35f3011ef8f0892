#include "gateway/plan_endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/limits.h"
#include "gateway/plan_service.h"
#include "gateway/status_report.h"
#include "protocol/errors.h"
#include "traffic/audit_entry.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;
using protocol::ApiError;
using protocol::ApiErrorCode;

constexpr int kConflict = 409;
constexpr int kTooLarge = 413;
constexpr int kBroken = 500;

void refuse(const Exchange& exchange, int status, ApiErrorCode code, std::string message,
            std::string place = {}) {
    exchange->respond(net::HttpResponse::json(
        status, protocol::to_json(ApiError{
                    .code = code, .message = std::move(message), .param = std::move(place)})));
}

void refuse(const Exchange& exchange, const Error& error) {
    const bool broken = error.code() == ErrorCode::kIo || error.code() == ErrorCode::kInternal;
    refuse(exchange, broken ? kBroken : kConflict,
           broken ? ApiErrorCode::kInternal : ApiErrorCode::kInvalidRequest, error.message(),
           error.place());
}

void answer(const Exchange& exchange, const json::object& body) {
    exchange->respond(net::HttpResponse::json(200, json::serialize(body)));
}

/// What a header says, as far as it fits on a line of a log.
std::string header(const Exchange& exchange, std::string_view name, std::string_view otherwise) {
    constexpr std::size_t kShown = 200;
    const auto text = exchange->request().headers.find(name).value_or(otherwise);
    return std::string(text.substr(0, kShown));
}

Operator read_operator(const Exchange& exchange) {
    const net::HttpRequest& request = exchange->request();
    const std::string by = header(exchange, "x-sluice-by", "");
    return {.who = fmt::format("{}{}admin {}", by, by.empty() ? "" : " at ", request.peer),
            .why = header(exchange, "x-sluice-why", ""),
            .force = request.query.find("force=true") != std::string::npos};
}

/// The plan in the body; nullopt once the mistakes in it were told.
std::optional<traffic::Plan> read_plan(const Exchange& exchange, const PlanService& service) {
    const std::string& body = exchange->request().body;
    if (body.size() > limits::kPlanTextBytes) {
        refuse(exchange, kTooLarge, ApiErrorCode::kPayloadTooLarge,
               fmt::format("a plan has at most {} bytes", limits::kPlanTextBytes));
        return std::nullopt;
    }
    auto plan =
        traffic::read_plan(body, header(exchange, "x-sluice-file", "plan"), service.pool_names());
    if (plan) return std::move(*plan);
    std::string message;
    for (const Error& error : plan.error())
        message += fmt::format("{}{}", message.empty() ? "" : "\n", error.to_string());
    refuse(exchange, protocol::http_status(ApiErrorCode::kInvalidRequest),
           ApiErrorCode::kInvalidRequest, std::move(message));
    return std::nullopt;
}

json::array splits_json(const traffic::Controller& controller) {
    const auto now = std::chrono::steady_clock::now();
    json::array splits;
    for (const traffic::Split& split : controller.plan().splits) {
        const auto left = controller.lease_left(split.pool, now);
        splits.push_back({{"pool", split.pool},
                          {"weight", split.weight},
                          {"lease_left_ms", left.count()},
                          {"open", controller.open(split.pool, now)}});
    }
    return splits;
}

json::array shadows_json(const traffic::Controller& controller) {
    json::array shadows;
    for (const traffic::Shadow& shadow : controller.plan().shadows)
        shadows.push_back({{"pool", shadow.pool},
                           {"share", shadow.share},
                           {"max_concurrent", shadow.max_concurrent},
                           {"running", controller.copies_running(shadow.pool)}});
    return shadows;
}

json::array guards_json(const traffic::Plan& plan) {
    json::array guards;
    for (const traffic::Guard& guard : plan.guards) {
        json::object row{{"pool", guard.pool},
                         {"metric", to_string(guard.metric)},
                         {"min_samples", guard.min_samples},
                         {"window_ms", guard.window.count()}};
        if (guard.max) row["max"] = *guard.max;
        if (guard.max_ratio) row["max_ratio"] = *guard.max_ratio;
        guards.push_back(std::move(row));
    }
    return guards;
}

json::object plan_json(const traffic::Controller& controller) {
    const traffic::State& state = controller.state();
    json::object plan{{"version", state.version},
                      {"digest", traffic::digest(state.plan)},
                      {"stable", state.plan.stable},
                      {"latched", state.latched},
                      {"reason", nullptr},
                      {"since", nullptr},
                      {"splits", splits_json(controller)},
                      {"shadows", shadows_json(controller)},
                      {"guards", guards_json(state.plan)}};
    if (state.latched) {
        plan["reason"] = state.reason;
        plan["since"] = traffic::utc(state.since);
    }
    return plan;
}

json::array changes_json(const traffic::Plan& from, const traffic::Plan& to) {
    json::array changes;
    for (const std::string& line : traffic::difference(from, to)) changes.emplace_back(line);
    return changes;
}

std::string status_json(Gateway& gateway, const PlanService& service) {
    const auto facts = service.facts();
    const auto capacity = traffic::rollback_capacity(service.controller().plan(), facts);
    std::string slots = "0";
    if (capacity.ready) slots = capacity.slots ? fmt::format("{}", *capacity.slots) : "\"unknown\"";
    return fmt::format(R"({{"plan":{},"pools":{},"rollback_capacity":{},"rollback_needed":{}}})",
                       json::serialize(plan_json(service.controller())),
                       pools_json(gateway.pools()), slots, capacity.needed);
}

void show(const Exchange& exchange, const PlanService& service) {
    json::object body = plan_json(service.controller());
    body["toml"] = traffic::to_toml(service.controller().plan());
    answer(exchange, body);
}

void apply(const Exchange& exchange, PlanService& service) {
    const auto plan = read_plan(exchange, service);
    if (!plan) return;
    json::array changes = changes_json(service.controller().plan(), *plan);
    if (const auto applied = service.apply(*plan, read_operator(exchange)); !applied)
        return refuse(exchange, applied.error());
    json::object body = plan_json(service.controller());
    body["changes"] = std::move(changes);
    answer(exchange, body);
}

void diff(const Exchange& exchange, const PlanService& service) {
    const auto plan = read_plan(exchange, service);
    if (!plan) return;
    answer(exchange, {{"changes", changes_json(service.controller().plan(), *plan)}});
}

}  // namespace

void add_plan_endpoints(Gateway& gateway, PlanService& service) {
    Router& routes = gateway.admin_routes();
    routes.add("GET", "/admin/status", [&](const Exchange& exchange, std::string_view) {
        exchange->respond(net::HttpResponse::json(200, status_json(gateway, service)));
    });
    routes.add("GET", "/admin/plan",
               [&](const Exchange& exchange, std::string_view) { show(exchange, service); });
    routes.add("PUT", "/admin/plan",
               [&](const Exchange& exchange, std::string_view) { apply(exchange, service); });
    routes.add("POST", "/admin/plan/diff",
               [&](const Exchange& exchange, std::string_view) { diff(exchange, service); });
    routes.add("POST", "/admin/plan/rearm", [&](const Exchange& exchange, std::string_view) {
        const auto rearmed = service.rearm(read_operator(exchange));
        if (!rearmed) return refuse(exchange, rearmed.error());
        answer(exchange, plan_json(service.controller()));
    });
    routes.add("POST", "/admin/rollback", [&](const Exchange& exchange, std::string_view) {
        const bool evacuate = exchange->request().query.find("evacuate=true") != std::string::npos;
        const auto done =
            service.roll_back(read_operator(exchange),
                              evacuate ? dispatch::Running::kEvacuate : dispatch::Running::kFinish);
        if (!done) return refuse(exchange, done.error());
        answer(exchange, plan_json(service.controller()));
    });
}

}  // namespace sluice::gateway
