#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <memory>
#include <string>

#include "app/admin_client.h"
#include "app/command.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

/// The value of `key` as a person reads it; "-" for what is absent or null.
std::string shown(const json::object& object, std::string_view key) {
    const json::value* const value = object.if_contains(key);
    if (value == nullptr || value->is_null()) return "-";
    if (value->is_string()) return std::string(value->get_string());
    if (value->is_bool()) return value->get_bool() ? "yes" : "no";
    if (value->is_double()) return fmt::format("{:.2f}", value->get_double());
    if (value->is_int64()) return fmt::format("{}", value->get_int64());
    if (value->is_uint64()) return fmt::format("{}", value->get_uint64());
    return "-";
}

std::string workers_text(const json::array& workers) {
    std::size_t width = 4;
    for (const json::value& worker : workers)
        width = std::max(width, shown(worker.as_object(), "name").size());
    std::string text = fmt::format("  {:<{}}  {:<9} {:>7} {:>7} {:>5} {:>7}  {:>7}  url\n", "name",
                                   width, "state", "running", "waiting", "kv", "age ms", "pid");
    for (const json::value& value : workers) {
        const json::object& worker = value.as_object();
        text += fmt::format("  {:<{}}  {:<9} {:>7} {:>7} {:>5} {:>7}  {:>7}  {}\n",
                            shown(worker, "name"), width, shown(worker, "state"),
                            shown(worker, "running"), shown(worker, "waiting"),
                            shown(worker, "kv_used_share"), shown(worker, "report_age_ms"),
                            shown(worker, "pid"), shown(worker, "url"));
    }
    return text;
}

std::string status_text(const json::object& status) {
    std::string text =
        fmt::format("plan: {} answers\n", shown(status.at("plan").as_object(), "stable"));
    for (const json::value& value : status.at("pools").as_array()) {
        const json::object& pool = value.as_object();
        text += fmt::format(
            "pool {} ({}): {}, {} dispatched\n", shown(pool, "name"), shown(pool, "engine"),
            pool.at("ready").as_bool() ? "ready" : "not ready", shown(pool, "dispatched_total"));
        text += workers_text(pool.at("workers").as_array());
    }
    return text;
}

int status(const AdminOptions& options) {
    const Result<std::string> body = call_admin(options, {.url = "/admin/status"});
    if (!body) return fail_admin(body.error());
    if (options.json) {
        print(*body + "\n");
        return kDone;
    }
    try {
        print(status_text(json::parse(*body).as_object()));
        return kDone;
    } catch (const std::exception&) {
        return fail(kFailed, "what answers there is not the status of a gateway");
    }
}

}  // namespace

Run define_ctl_status(CLI::App& verb) {
    auto options = std::make_shared<AdminOptions>();
    add_admin_options(verb, *options, "Print one JSON object");
    return [options] { return status(*options); };
}

}  // namespace sluice::app
