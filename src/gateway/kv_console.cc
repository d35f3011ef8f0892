#include "gateway/kv_console.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "base/limits.h"
#include "gateway/answer_writer.h"
#include "gateway/kv_pin.h"
#include "net/query.h"
#include "port/json_writer.h"
#include "port/kv_orders.h"
#include "port/kv_status.h"
#include "protocol/errors.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;
using port::JsonWriter;
using protocol::ApiErrorCode;

void refuse(const Exchange& exchange, const Error& error) {
    ApiErrorCode code = ApiErrorCode::kInvalidRequest;
    switch (error.code()) {
        case ErrorCode::kNotFound: code = ApiErrorCode::kNotFound; break;
        case ErrorCode::kUnsupported: code = ApiErrorCode::kUnsupported; break;
        case ErrorCode::kIo: code = ApiErrorCode::kInternal; break;
        default: break;
    }
    respond_error(*exchange, {.code = code, .message = error.message(), .param = error.place()});
}

void answer(const Exchange& exchange, std::string body) {
    exchange->respond(net::HttpResponse::json(200, std::move(body)));
}

Result<KvNode> read_node(const std::string& text) {
    boost::system::error_code error;
    const json::value body =
        text.size() > limits::kPortTextBytes ? json::value() : json::parse(text, error);
    if (error || !body.is_object())
        return std::unexpected(Error::invalid("the body must be a JSON object"));
    const auto field = [&](std::string_view name) -> std::string {
        const json::value* const value = body.get_object().if_contains(name);
        return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
    };
    return KvNode{
        .url = field("url"), .http = field("http"), .password_env = field("password_env")};
}

void write_members(JsonWriter& writer, const KvMembers& members) {
    writer.field("epoch", members.epoch());
    writer.key("members");
    writer.begin_array();
    for (const KvNode& node : members.nodes()) {
        writer.begin_object();
        writer.field("url", node.url);
        if (!node.http.empty()) writer.field("http", node.http);
        writer.field("foreign", node.http.empty());
        writer.end_object();
    }
    writer.end_array();
}

std::string members_json(const KvMembers& members) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    write_members(writer, members);
    writer.end_object();
    return out;
}

std::string added_json(const KvMembers& members, const std::vector<std::string>& unreachable) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    write_members(writer, members);
    writer.key("unreachable");
    writer.begin_array();
    for (const std::string& each : unreachable) writer.value(each);
    writer.end_array();
    writer.end_object();
    return out;
}

void write_holder(JsonWriter& writer, const KvHolder& holder) {
    writer.field("kind", holder.is_node() ? "node" : "worker");
    if (!holder.is_node()) writer.field("name", holder.name);
    if (!holder.is_node()) writer.field("pool", holder.pool);
    writer.field("url", holder.url);
    writer.field("foreign", holder.is_foreign());
}

/// What a holder said, read by `parse`; an error for what can't be read, too.
template <class Parse>
auto read_answer(const KvAnswer& answer, Parse&& parse) -> decltype(parse(std::string_view())) {
    if (!answer.body) return std::unexpected(answer.body.error());
    auto said = parse(*answer.body);
    if (said) return said;
    return std::unexpected(
        Error::corrupt(fmt::format("it sent what can't be read: {}", said.error().to_string())));
}

std::string status_json(const KvMembers& members, const std::vector<KvAnswer>& answers) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    write_members(writer, members);
    writer.key("holders");
    writer.begin_array();
    for (const KvAnswer& answer : answers) {
        const auto status = read_answer(answer, port::parse_kv_status);
        writer.begin_object();
        write_holder(writer, answer.holder);
        writer.key("status");
        status ? writer.raw(to_json(*status)) : writer.null();
        if (!status) writer.field("error", status.error().message());
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    return out;
}

std::string results_json(const std::vector<KvAnswer>& answers) {
    std::string out;
    JsonWriter writer(out);
    port::KvOrderResult sum;
    writer.begin_object();
    writer.key("holders");
    writer.begin_array();
    for (const KvAnswer& answer : answers) {
        const auto result = read_answer(answer, port::parse_kv_order_result);
        const port::KvOrderResult did = result.value_or(port::KvOrderResult{});
        sum.done += did.done;
        sum.bytes += did.bytes;
        sum.failed += did.failed;
        writer.begin_object();
        write_holder(writer, answer.holder);
        writer.field("done", did.done);
        writer.field("bytes", did.bytes);
        writer.field("failed", did.failed);
        if (!result) writer.field("error", result.error().message());
        writer.end_object();
    }
    writer.end_array();
    writer.field("done", sum.done);
    writer.field("bytes", sum.bytes);
    writer.field("failed", sum.failed);
    writer.end_object();
    return out;
}

}  // namespace

void KvConsole::add_to(Router& routes) {
    routes.add("GET", "/admin/kv/nodes", [this](const Exchange& exchange, std::string_view) {
        answer(exchange, members_json(services_.members));
    });
    routes.add("POST", "/admin/kv/nodes",
               [this](const Exchange& exchange, std::string_view) { add_node(exchange); });
    routes.add("DELETE", "/admin/kv/nodes",
               [this](const Exchange& exchange, std::string_view) { remove_node(exchange); });
    routes.add("GET", "/admin/kv/status",
               [this](const Exchange& exchange, std::string_view) { status(exchange); });
    routes.add("POST", "/admin/kv/drop",
               [this](const Exchange& exchange, std::string_view) { drop(exchange); });
    routes.add("POST", "/admin/kv/pin",
               [this](const Exchange& exchange, std::string_view) { pin(exchange); });
    routes.add("POST", "/admin/kv/verify",
               [this](const Exchange& exchange, std::string_view) { verify(exchange); });
}

// ---- Which nodes there are ------------------------------------------------------------------------

void KvConsole::add_node(const Exchange& exchange) {
    const auto node = read_node(exchange->request().body);
    if (!node) return refuse(exchange, node.error());
    const auto added = services_.members.add(*node);
    if (!added) return refuse(exchange, added.error());
    services_.push.tell(worker_urls());
    const std::uint64_t number = probes_begun_++;
    probes_[number] = std::make_unique<KvNodeProbe>(
        services_.loop, services_.client, *node,
        [this, number, exchange](const std::vector<std::string>& unreachable) {
            const auto done = probes_.extract(number);
            answer(exchange, added_json(services_.members, unreachable));
        });
}

void KvConsole::remove_node(const Exchange& exchange) {
    const auto query = net::parse_query(exchange->request().query);
    if (!query) return refuse(exchange, query.error());
    const auto url = query->find("url");
    if (url == query->end())
        return refuse(exchange, Error::invalid("the query must say url=...", "url"));
    if (const auto removed = services_.members.remove(url->second); !removed)
        return refuse(exchange, removed.error());
    services_.push.tell(worker_urls());
    answer(exchange, members_json(services_.members));
}

// ---- What they hold -------------------------------------------------------------------------------

std::vector<std::string> KvConsole::worker_urls() const {
    std::vector<std::string> urls;
    for (const KvHolder& holder : kv_holders(services_.pools, services_.members))
        if (!holder.is_node()) urls.push_back(holder.url);
    return urls;
}

void KvConsole::ask_all(KvQuestion question, std::function<void(std::vector<KvAnswer>)> on_done) {
    const std::uint64_t number = surveys_begun_++;
    surveys_[number] = std::make_unique<KvSurvey>(
        services_.loop, services_.client, kv_holders(services_.pools, services_.members),
        std::move(question),
        [this, number, on_done = std::move(on_done)](std::vector<KvAnswer> answers) {
            const auto done = surveys_.extract(number);
            on_done(std::move(answers));
        });
}

void KvConsole::status(const Exchange& exchange) {
    ask_all({.path = "/kv/status"}, [this, exchange](const std::vector<KvAnswer>& answers) {
        answer(exchange, status_json(services_.members, answers));
    });
}

void KvConsole::order(const Exchange& exchange, KvQuestion question) {
    question.method = "POST";
    ask_all(std::move(question), [exchange](const std::vector<KvAnswer>& answers) {
        answer(exchange, results_json(answers));
    });
}

void KvConsole::drop(const Exchange& exchange) {
    const auto wanted = port::parse_kv_drop_order(exchange->request().body);
    if (!wanted) return refuse(exchange, wanted.error());
    order(exchange, {.path = "/kv/drop", .body = to_json(*wanted)});
}

void KvConsole::pin(const Exchange& exchange) {
    const auto wanted = read_pin(
        exchange->request().body,
        {.history = services_.history, .pool = services_.stable(), .caches = services_.caches});
    if (!wanted) return refuse(exchange, wanted.error());
    order(exchange, {.path = "/kv/pin", .body = to_json(*wanted)});
}

void KvConsole::verify(const Exchange& exchange) {
    order(exchange, {.path = "/kv/verify", .body = "{}", .time = port::kKvVerifyTime});
}

}  // namespace sluice::gateway
