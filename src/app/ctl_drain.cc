#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "app/admin_client.h"
#include "app/command.h"
#include "base/units.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kPause{50};

struct Options {
    AdminOptions admin;
    std::string worker;
    std::string wait = "60s";
    bool undo = false;
};

/// Requests that the gateway still has there.
std::int64_t left(const json::object& worker) {
    const json::value* const leases = worker.if_contains("leases");
    return leases != nullptr && leases->is_int64() ? leases->get_int64() : 0;
}

void show(const Options& options, const json::object& worker) {
    if (options.admin.json) return print(json::serialize(worker) + "\n");
    if (options.undo) return print(fmt::format("{} takes requests again\n", options.worker));
    const std::int64_t count = left(worker);
    print(count == 0
              ? fmt::format("{} is drained: nothing runs there\n", options.worker)
              : fmt::format("{} is draining: {} requests run there\n", options.worker, count));
}

int drain(const Options& options) {
    const auto patience = parse_duration(options.wait);
    if (!patience) return fail(kWrongUse, patience.error());
    const std::string url = "/workers/" + options.worker;
    auto worker = ask_admin(
        options.admin, {.method = "PATCH",
                        .url = url,
                        .body = options.undo ? R"({"draining":false})" : R"({"draining":true})"});
    const auto end = std::chrono::steady_clock::now() + *patience;
    while (worker && !options.undo && left(*worker) > 0 && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(kPause);
        worker = ask_admin(options.admin, {.url = url});
    }
    if (!worker) return fail_admin(worker.error());
    show(options, *worker);
    return options.undo || left(*worker) == 0 ? kDone : kFailed;
}

}  // namespace

Run define_ctl_drain(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("worker", options->worker, "Its name, as `sluice ctl status` shows it")
        ->required()
        ->type_name("W");
    verb.add_flag("--undo", options->undo, "It takes requests again");
    verb.add_option("--wait", options->wait, "How long to wait until nothing runs there")
        ->type_name("TIME")
        ->capture_default_str();
    add_admin_options(verb, options->admin, "Print the worker as a JSON object");
    return [options] { return drain(*options); };
}

}  // namespace sluice::app
