#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/admin_client.h"
#include "app/command.h"
#include "base/units.h"
#include "net/query.h"
#include "record/card_numbers.h"
#include "record/request_row.h"

namespace sluice::app {
namespace {

struct Options {
    AdminOptions admin;
    std::string since = "1h";
    std::string pool;
    std::string role;
    std::optional<std::uint64_t> limit;
};

std::string path_of(const Options& options) {
    std::string path = "/admin/records?since=" + net::percent_encode(options.since);
    if (!options.pool.empty()) path += "&pool=" + net::percent_encode(options.pool);
    if (!options.role.empty()) path += "&role=" + net::percent_encode(options.role);
    if (options.limit) path += fmt::format("&limit={}", *options.limit);
    return path;
}

std::optional<double> ms(std::optional<std::chrono::microseconds> duration) {
    if (!duration) return std::nullopt;
    return static_cast<double>(duration->count()) / 1000.0;
}

std::string line_of(const record::RequestRow& row) {
    return fmt::format(
        "{}  {}  {:<10} {:<6} {:<15} {:>8} {:>7} tokens, first after {}, {} each, {}\n",
        record::format_time(row.time_ms), record::plain(row.request_id), record::plain(row.pool),
        to_string(row.role), to_string(row.outcome), row.prompt_tokens, row.completion_tokens,
        record::format_ms(ms(row.ttft)), record::format_ms(ms(row.gaps.quantile(0.5))),
        record::format_ms(ms(row.duration)));
}

/// Cuts what comes into lines and prints each.
class LinePrinter {
public:
    explicit LinePrinter(bool json) : json_(json) {}

    void take(std::string_view data) {
        if (json_) return print(data);
        for (std::size_t end = data.find('\n'); end != std::string_view::npos;
             end = data.find('\n')) {
            line_ += data.substr(0, end);
            data.remove_prefix(end + 1);
            if (const auto parsed = record::parse_row(line_)) print(line_of(parsed->row));
            line_.clear();
        }
        line_ += data;
    }

private:
    bool json_;
    std::string line_;
};

int run(const Options& options) {
    if (const auto since = parse_duration(options.since); !since)
        return fail(kWrongUse, since.error().within("--since"));
    LinePrinter printer(options.admin.json);
    const auto done = stream_admin(options.admin, {.url = path_of(options)},
                                   [&](std::string_view data) { printer.take(data); });
    return done ? kDone : fail_admin(done.error());
}

}  // namespace

Run define_ctl_records(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("--since", options->since, "How far back, for example 30m")
        ->capture_default_str()
        ->type_name("TIME");
    verb.add_option("--pool", options->pool, "Only of this pool")->type_name("POOL");
    verb.add_option("--role", options->role, "Only answers, or only copies")
        ->check(CLI::IsMember({"answer", "shadow"}));
    verb.add_option("--limit", options->limit, "At most the newest N")->type_name("N");
    add_admin_options(verb, options->admin, "Print JSON, a row a line");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
