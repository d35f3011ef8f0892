#include "gateway/worker_endpoints.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/limits.h"
#include "discovery/etcd_codec.h"
#include "gateway/answer_writer.h"
#include "gateway/status_report.h"
#include "protocol/errors.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;
using protocol::ApiErrorCode;

void refuse(const Exchange& exchange, const Error& error) {
    ApiErrorCode code = ApiErrorCode::kInvalidRequest;
    if (error.code() == ErrorCode::kNotFound) code = ApiErrorCode::kNotFound;
    if (error.code() == ErrorCode::kUnsupported) code = ApiErrorCode::kUnsupported;
    if (error.code() == ErrorCode::kExhausted) code = ApiErrorCode::kQueueFull;
    respond_error(*exchange, {.code = code, .message = error.message(), .param = error.place()});
}

void answer(const Exchange& exchange, const json::object& body) {
    exchange->respond(net::HttpResponse::json(200, json::serialize(body)));
}

Result<json::object> read_body(const Exchange& exchange) {
    const std::string& text = exchange->request().body;
    if (text.size() > limits::kPortTextBytes)
        return std::unexpected(Error::invalid(
            fmt::format("the body is longer than {} bytes", limits::kPortTextBytes)));
    boost::system::error_code error;
    json::value body = json::parse(text, error);
    if (error || !body.is_object())
        return std::unexpected(Error::invalid("the body must be a JSON object"));
    return std::move(body.get_object());
}

/// nullopt if it is not there: then the worker stays until it is taken away.
Result<std::optional<std::chrono::milliseconds>> read_lease(const json::object& body) {
    const json::value* const lease = body.if_contains("lease_s");
    if (lease == nullptr || lease->is_null()) return std::nullopt;
    if (lease->is_int64() && lease->get_int64() >= 1 &&
        lease->get_int64() <= limits::kRegistrationSeconds)
        return std::chrono::seconds(lease->get_int64());
    return std::unexpected(Error::invalid(
        fmt::format("must be a whole number from 1 to {}", limits::kRegistrationSeconds),
        "lease_s"));
}

void announce(const Exchange& exchange, WorkerDirectory& directory) {
    const auto body = read_body(exchange);
    if (!body) return refuse(exchange, body.error());
    const auto worker = discovery::parse_worker_json(exchange->request().body);
    if (!worker) return refuse(exchange, worker.error());
    const auto lease = read_lease(*body);
    if (!lease) return refuse(exchange, lease.error());
    const auto name = directory.announce(*worker, *lease);
    if (!name) return refuse(exchange, name.error());
    answer(exchange, {{"name", *name}, {"pool", worker->pool}, {"url", worker->url}});
}

void show(const Exchange& exchange, const WorkerDirectory& directory, std::string_view name) {
    if (const auto view = directory.find(name))
        return exchange->respond(net::HttpResponse::json(200, worker_json(*view)));
    refuse(exchange, {ErrorCode::kNotFound, fmt::format("there is no worker \"{}\" here", name)});
}

void drain(const Exchange& exchange, WorkerDirectory& directory, std::string_view name) {
    const auto body = read_body(exchange);
    if (!body) return refuse(exchange, body.error());
    const json::value* const on = body->if_contains("draining");
    if (on == nullptr || !on->is_bool())
        return refuse(exchange, Error::invalid("must be true or false", "draining"));
    if (const auto done = directory.drain(name, on->get_bool()); !done)
        return refuse(exchange, done.error());
    show(exchange, directory, name);
}

void withdraw(const Exchange& exchange, WorkerDirectory& directory, std::string_view name) {
    if (const auto done = directory.withdraw(name); !done) return refuse(exchange, done.error());
    const auto view = directory.find(name);
    answer(exchange, {{"name", name}, {"state", view ? view->state : "removed"}});
}

}  // namespace

void add_worker_endpoints(Router& routes, WorkerDirectory& directory) {
    routes.add("POST", "/workers", [&directory](const Exchange& exchange, std::string_view) {
        announce(exchange, directory);
    });
    routes.add("GET", "/workers/", [&directory](const Exchange& exchange, std::string_view name) {
        show(exchange, directory, name);
    });
    routes.add("PATCH", "/workers/", [&directory](const Exchange& exchange, std::string_view name) {
        drain(exchange, directory, name);
    });
    routes.add("DELETE", "/workers/",
               [&directory](const Exchange& exchange, std::string_view name) {
                   withdraw(exchange, directory, name);
               });
}

}  // namespace sluice::gateway
