#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "app/admin_client.h"
#include "app/command.h"
#include "base/units.h"

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
    std::string text =
        fmt::format("  {:<{}}  {:<7} {:<9} {:>7} {:>7} {:>5} {:>7}  {:>7}  url\n", "name", width,
                    "phase", "state", "running", "waiting", "kv", "age ms", "pid");
    for (const json::value& value : workers) {
        const json::object& worker = value.as_object();
        text += fmt::format(
            "  {:<{}}  {:<7} {:<9} {:>7} {:>7} {:>5} {:>7}  {:>7}  {}\n", shown(worker, "name"),
            width, shown(worker, "phase"), shown(worker, "state"), shown(worker, "running"),
            shown(worker, "waiting"), shown(worker, "kv_used_share"),
            shown(worker, "report_age_ms"), shown(worker, "pid"), shown(worker, "url"));
        if (const std::string why = shown(worker, "reason"); why != "-")
            text += fmt::format("  {:<{}}  {}\n", "", width, why);
    }
    return text;
}

/// The rows of a list in the plan; nothing where a gateway has no such list.
const json::array& rows(const json::object& plan, std::string_view key) {
    static const json::array none;
    const json::value* const list = plan.if_contains(key);
    return list == nullptr ? none : list->as_array();
}

std::string plan_text(const json::object& status) {
    const json::object& plan = status.at("plan").as_object();
    std::string text =
        fmt::format("plan {}: {} answers", shown(plan, "version"), shown(plan, "stable"));
    if (const std::string slots = shown(status, "rollback_capacity"); slots != "-")
        text += fmt::format("; room for {} requests, {} are running", slots,
                            shown(status, "rollback_needed"));
    text += "\n";
    if (const json::value* latched = plan.if_contains("latched"); latched && latched->as_bool())
        text +=
            fmt::format("ROLLED BACK since {}: {}\n", shown(plan, "since"), shown(plan, "reason"));
    for (const json::value& value : rows(plan, "splits")) {
        const json::object& split = value.as_object();
        const std::chrono::milliseconds left(split.at("lease_left_ms").to_number<std::int64_t>());
        text +=
            fmt::format("  split {}: weight {}, {}; its lease ends in {}\n", shown(split, "pool"),
                        shown(split, "weight"), split.at("open").as_bool() ? "open" : "closed",
                        format_duration(std::chrono::floor<std::chrono::seconds>(left)));
    }
    for (const json::value& value : rows(plan, "shadows")) {
        const json::object& shadow = value.as_object();
        text += fmt::format("  shadow {}: share {}, {} of {} copies running\n",
                            shown(shadow, "pool"), shown(shadow, "share"), shown(shadow, "running"),
                            shown(shadow, "max_concurrent"));
    }
    return text;
}

std::string status_text(const json::object& status) {
    std::string text = plan_text(status);
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
