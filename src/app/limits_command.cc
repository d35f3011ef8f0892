#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <memory>

#include "app/command.h"
#include "base/limits.h"

namespace sluice::app {
namespace {

std::string limits_text() {
    std::size_t width = 0;
    for (const limits::Limit& limit : limits::all()) width = std::max(width, limit.name.size());
    std::string text =
        fmt::format("{:<{}}  {:>12}  {:<7} beyond it\n", "name", width, "value", "unit");
    for (const limits::Limit& limit : limits::all()) {
        text += fmt::format("{:<{}}  {:>12}  {:<7} {}\n", limit.name, width, limit.value,
                            limit.unit, limit.what);
    }
    return text;
}

std::string limits_json() {
    boost::json::array rows;
    for (const limits::Limit& limit : limits::all()) {
        rows.push_back({{"name", limit.name},
                        {"value", limit.value},
                        {"unit", limit.unit},
                        {"beyond", limit.what}});
    }
    return boost::json::serialize(rows) + "\n";
}

}  // namespace

Run define_limits(CLI::App& command) {
    auto json = std::make_shared<bool>(false);
    command.add_flag("--json", *json, "Print one JSON array");
    return [json] {
        print(*json ? limits_json() : limits_text());
        return kDone;
    };
}

}  // namespace sluice::app
