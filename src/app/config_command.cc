#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>

#include "app/command.h"
#include "app/stable_pool.h"
#include "base/config_rows.h"

namespace sluice::app {
namespace {

using Errors = std::vector<Error>;

struct Options {
    std::string file;
    bool json = false;
};

int check(const Options& options) {
    const auto config = read_config(options.file);
    if (options.json) {
        boost::json::array errors;
        for (const Error& error : config ? Errors{} : config.error()) {
            errors.push_back({{"place", error.place()}, {"message", error.message()}});
        }
        print(boost::json::serialize(
                  boost::json::object{{"valid", config.has_value()}, {"errors", errors}}) +
              "\n");
    }
    if (!config) return fail_config(config.error());
    if (!options.json) print(fmt::format("{}: good\n", options.file));
    return kDone;
}

std::string to_json(const ServiceConfig& config) {
    boost::json::array settings;
    for (const ConfigRow& row : rows(config)) {
        settings.push_back({{"table", row.table},
                            {"key", row.key},
                            {"value", row.value},
                            {"place", row.place},
                            {"meaning", row.meaning}});
    }
    return boost::json::serialize(settings) + "\n";
}

int show(const Options& options) {
    const auto config = read_config(options.file);
    if (!config) return fail_config(config.error());
    print(options.json ? to_json(*config) : render(*config));
    return kDone;
}

}  // namespace

Run define_config(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.require_subcommand(1);

    CLI::App* checked = command.add_subcommand("check", "Tell every mistake of a file by its line");
    checked->add_option("file,--config", options->file, "The TOML file")->required();
    checked->add_flag("--json", options->json, "Print one JSON object: valid, errors");

    CLI::App* shown = command.add_subcommand("show", "Print every setting, its place and meaning");
    shown->add_option("file,--config", options->file, "The TOML file; without it, the defaults");
    shown->add_flag("--json", options->json, "Print one JSON array; values as TOML writes them");

    return [options, checked] { return checked->parsed() ? check(*options) : show(*options); };
}

}  // namespace sluice::app
