#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <memory>
#include <string>

#include "app/admin_client.h"
#include "app/command.h"
#include "app/ctl_operator.h"
#include "base/durable_file.h"
#include "base/limits.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

struct Options {
    AdminOptions admin;
    std::string file;
    std::string why;
    bool force = false;
};

void add_change_options(CLI::App& verb, Options& options) {
    verb.add_option("--why", options.why, "For the audit log")->type_name("TEXT");
    verb.add_flag("--force", options.force,
                  "Even if nobody knows how many requests the stable pool can hold");
}

std::string force_query(const Options& options) { return options.force ? "?force=true" : ""; }

/// Prints the answer, or what `shown` makes of it.
int finish(const Options& options, const Result<std::string>& body,
           std::string (*shown)(const json::object&)) {
    if (!body) return fail_admin(body.error());
    if (options.admin.json) {
        print(*body + "\n");
        return kDone;
    }
    try {
        print(shown(json::parse(*body).as_object()));
        return kDone;
    } catch (const std::exception&) {
        return fail(kFailed, "what answers there is no gateway");
    }
}

/// Sends the file; what is wrong with it is told with its lines.
Result<std::string> send_plan(const Options& options, std::string method, std::string path) {
    auto text = read_if_there(options.file, limits::kPlanTextBytes);
    if (!text) return std::unexpected(text.error());
    if (!*text) return std::unexpected(Error::not_found("there is no such file", options.file));
    net::HttpHeaders headers = operator_headers(options.why);
    headers.set("Content-Type", "application/toml");
    headers.set("x-sluice-file", options.file);
    return call_admin(options.admin, {.method = std::move(method),
                                      .url = std::move(path),
                                      .headers = std::move(headers),
                                      .body = std::move(**text)});
}

std::string changes_text(const json::object& answer) {
    const json::array& changes = answer.at("changes").as_array();
    if (changes.empty()) return "no change\n";
    std::string text;
    for (const json::value& line : changes) text += std::string(line.as_string()) + "\n";
    return text;
}

std::string applied_text(const json::object& answer) {
    std::string text = changes_text(answer);
    text += fmt::format("plan {} holds\n", answer.at("version").to_number<std::uint64_t>());
    if (answer.at("latched").as_bool())
        text +=
            "but all traffic stays on the stable pool: it was rolled back, and only "
            "`sluice ctl plan rearm` undoes that\n";
    return text;
}

std::string plan_text(const json::object& answer) {
    std::string text =
        fmt::format("# plan {}, {}\n", answer.at("version").to_number<std::uint64_t>(),
                    std::string(answer.at("digest").as_string()));
    if (answer.at("latched").as_bool())
        text += fmt::format("# rolled back: {}\n", std::string(answer.at("reason").as_string()));
    return text + std::string(answer.at("toml").as_string());
}

int show(const Options& options) {
    return finish(options, call_admin(options.admin, {.url = "/admin/plan"}), plan_text);
}

int diff(const Options& options) {
    return finish(options, send_plan(options, "POST", "/admin/plan/diff"), changes_text);
}

int apply(const Options& options) {
    return finish(options, send_plan(options, "PUT", "/admin/plan" + force_query(options)),
                  applied_text);
}

int rearm(const Options& options) {
    const auto body = call_admin(options.admin, {.method = "POST",
                                                 .url = "/admin/plan/rearm" + force_query(options),
                                                 .headers = operator_headers(options.why)});
    return finish(options, body, [](const json::object&) -> std::string {
        return "rearmed: the plan's splits and shadows are open again\n";
    });
}

Run define_show(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    add_admin_options(verb, options->admin, "Print one JSON object");
    return [options] { return show(*options); };
}

Run define_diff(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("file", options->file, "A TOML file; only its [plan] tables count")->required();
    add_admin_options(verb, options->admin, "Print one JSON object: changes");
    return [options] { return diff(*options); };
}

Run define_apply(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("file", options->file, "A TOML file; only its [plan] tables count")->required();
    add_change_options(verb, *options);
    add_admin_options(verb, options->admin, "Print one JSON object: the plan, and changes");
    return [options] { return apply(*options); };
}

Run define_rearm(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    add_change_options(verb, *options);
    add_admin_options(verb, options->admin, "Print one JSON object: the plan");
    return [options] { return rearm(*options); };
}

constexpr auto kVerbs = std::to_array<Command>({
    {"show", "The plan that holds, as TOML", define_show},
    {"diff", "What a file would change", define_diff},
    {"apply", "Make a file the plan; the same file again renews its weights", define_apply},
    {"rearm", "Undo a rollback: let the plan's splits and shadows have traffic again",
     define_rearm},
});

}  // namespace

Run define_ctl_plan(CLI::App& verb) { return define_verbs(verb, kVerbs); }

}  // namespace sluice::app
