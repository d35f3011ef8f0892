#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>

#include "app/admin_client.h"
#include "app/command.h"
#include "base/units.h"
#include "net/query.h"

namespace sluice::app {
namespace {

struct Options {
    AdminOptions admin;
    std::string baseline;
    std::string candidate;
    std::string since = "1h";
    std::uint64_t min_samples = 50;
    std::string html;
};

Result<std::string> fetch(const Options& options, std::string_view format) {
    return call_admin(
        options.admin,
        {.url = fmt::format(
             "/admin/card?baseline={}&candidate={}&since={}&min_samples={}&format={}",
             net::percent_encode(options.baseline), net::percent_encode(options.candidate),
             net::percent_encode(options.since), options.min_samples, format)});
}

int write_page(const Options& options) {
    const auto page = fetch(options, "html");
    if (!page) return fail_admin(page.error());
    std::ofstream file(options.html, std::ios::binary);
    file << *page;
    file.close();
    if (!file) return fail(kFailed, Error::io("writing the page", errno, options.html));
    fmt::print(stderr, "the page is in {}\n", options.html);
    return kDone;
}

int run(const Options& options) {
    if (const auto since = parse_duration(options.since); !since)
        return fail(kWrongUse, since.error().within("--since"));
    if (!options.html.empty()) {
        if (const int code = write_page(options); code != kDone) return code;
    }
    const auto card = fetch(options, options.admin.json ? "json" : "text");
    if (!card) return fail_admin(card.error());
    print(options.admin.json ? *card + "\n" : *card);
    return kDone;
}

}  // namespace

Run define_card(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.add_option("--baseline", options->baseline, "The pool that answers")
        ->required()
        ->type_name("POOL");
    command.add_option("--candidate", options->candidate, "The pool that is laid beside it")
        ->required()
        ->type_name("POOL");
    command.add_option("--since", options->since, "How far back, for example 30m")
        ->capture_default_str()
        ->type_name("TIME");
    command
        .add_option("--min-samples", options->min_samples,
                    "Fewer attempts on a side are no ground for a verdict")
        ->capture_default_str()
        ->type_name("N");
    command.add_option("--html", options->html, "Also write a page that opens offline")
        ->type_name("FILE");
    add_admin_options(command, options->admin, "Print one JSON object");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
