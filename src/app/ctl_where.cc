#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <memory>

#include "app/admin_client.h"
#include "app/command.h"
#include "net/query.h"
#include "record/card_numbers.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

struct Options {
    AdminOptions admin;
    std::string id;
};

std::string shown(const json::object& object, std::string_view key) {
    const json::value* const value = object.if_contains({key.data(), key.size()});
    if (value == nullptr || value->is_null()) return record::kNothing;
    if (const json::string* const text = value->if_string())
        return text->empty() ? record::kNothing : record::plain({text->data(), text->size()});
    return record::plain(json::serialize(*value));
}

std::string versions_text(const json::object& versions, std::string_view indent) {
    std::string text;
    for (const auto& [name, value] : versions) {
        text += fmt::format("{}{:<17} {}\n", indent, std::string_view(name.data(), name.size()),
                            shown(versions, {name.data(), name.size()}));
    }
    return text;
}

/// "192 tokens (pool 64, node 128)"
std::string cache_text(const json::object& cache) {
    std::string sources;
    for (const auto& [name, tokens] : cache.at("by_source").as_object())
        sources += fmt::format("{}{} {}", sources.empty() ? "" : ", ",
                               record::plain({name.data(), name.size()}), json::serialize(tokens));
    const std::string all = shown(cache, "cached_tokens") + " tokens";
    return sources.empty() ? all : fmt::format("{} ({})", all, sources);
}

double ms(const json::object& object, std::string_view key) {
    return object.at({key.data(), key.size()}).to_number<double>() / 1000.0;
}

/// "node: load 128 tokens, 2.1 ms (predicted 3.0; computing them 40.0, after a queue of 0.0)"
std::string decision_text(const json::object& decision) {
    std::string text;
    for (const json::value& value : decision.at("loads").as_array()) {
        const json::object& load = value.as_object();
        text += fmt::format("  {}: {} {} tokens, {:.1f} ms (predicted {:.1f}; ",
                            shown(load, "source"), shown(load, "choice"), shown(load, "tokens"),
                            ms(load, "took_us"), ms(load, "predicted_us"));
        text += fmt::format("computing them {:.1f}, after a queue of {:.1f})\n",
                            ms(load, "compute_us"), ms(load, "queue_us"));
    }
    return text + fmt::format("  then, to the first token: {:.1f} ms (predicted {:.1f})\n",
                              ms(decision, "compute_took_us"),
                              ms(decision, "compute_predicted_us"));
}

std::string where_text(const json::object& where) {
    if (!where.contains("rid")) return versions_text(where.at("versions").as_object(), "");
    std::string text =
        fmt::format("request {} ({}): {}, {}\n", shown(where, "request_id"), shown(where, "rid"),
                    shown(where, "state"), shown(where, "outcome"));
    const json::object& cache = where.at("cache").as_object();
    text += fmt::format("cache: {}, resumes: {}\n", cache_text(cache), shown(where, "resumes"));
    if (cache.contains("decision")) text += decision_text(cache.at("decision").as_object());
    for (const json::value& value : where.at("legs").as_array()) {
        const json::object& leg = value.as_object();
        text += fmt::format("leg {} on {} of pool {}\n", shown(leg, "phase"), shown(leg, "worker"),
                            shown(leg, "pool"));
        text += versions_text(leg.at("versions").as_object(), "  ");
    }
    for (const json::value& value : where.at("shadow").as_array()) {
        const json::object& copy = value.as_object();
        text +=
            fmt::format("copy {} on pool {}: {}, differs in {}\n", shown(copy, "rid"),
                        shown(copy, "pool"), shown(copy, "outcome"), shown(copy, "differences"));
    }
    return text;
}

int run(const Options& options) {
    const auto body =
        call_admin(options.admin, {.url = "/admin/where/" + net::percent_encode(options.id)});
    if (!body) return fail_admin(body.error());
    if (options.admin.json) {
        print(*body + "\n");
        return kDone;
    }
    try {
        print(where_text(json::parse(*body).as_object()));
        return kDone;
    } catch (const std::exception&) {
        return fail(kFailed, "what answers there is not a gateway");
    }
}

}  // namespace

Run define_ctl_where(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("id", options->id,
                    "A request's id (x-request-id), its rid, or a system_fingerprint")
        ->required()
        ->type_name("ID");
    add_admin_options(verb, options->admin, "Print one JSON object");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
