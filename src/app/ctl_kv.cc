#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <functional>
#include <memory>

#include "app/admin_client.h"
#include "app/command.h"
#include "app/ctl_kv_text.h"
#include "base/limits.h"
#include "base/private_file.h"
#include "base/units.h"
#include "net/query.h"
#include "port/kv_orders.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

struct Options {
    AdminOptions admin;
    std::string url;
    std::string http;
    std::string password_env;
    std::string tenant;
    std::string retention;
    std::vector<std::string> names;
    std::string id;
    std::string prompt;
    std::string file;
    std::string conversation;
    std::string time = "1h";
};

/// Prints an answer as JSON, or as `to_text` has it.
int show(const Options& options, const Result<json::object>& answer,
         const std::function<std::string(const json::object&)>& to_text) {
    if (!answer) return fail_admin(answer.error());
    try {
        print(options.admin.json ? json::serialize(*answer) + "\n" : to_text(*answer));
        return kDone;
    } catch (const std::exception&) {
        return fail(kFailed, "what answers there is not a gateway of this version");
    }
}

/// Whether all that could be asked did as they were told.
bool all_did(const json::object& results) {
    for (const json::value& value : results.at("holders").as_array()) {
        const json::object& holder = value.as_object();
        if (holder.contains("error") && !holder.at("foreign").as_bool()) return false;
    }
    return true;
}

/// What an order's answer must be for the command to have done what it was for.
using Good = bool (*)(const json::object& results);

int give_order(const Options& options, const std::string& path, const json::object& body,
               std::string_view done, std::string_view failed, Good good,
               std::chrono::milliseconds time = std::chrono::seconds(30)) {
    const auto results = ask_admin(
        options.admin,
        {.method = "POST", .url = path, .body = json::serialize(body), .head_time = time});
    const int shown = show(options, results, [&](const json::object& said) {
        return kv_results_text(said, done, failed);
    });
    if (shown != kDone) return shown;
    return all_did(*results) && good(*results) ? kDone : kFailed;
}

std::uint64_t count(const json::object& results, std::string_view key) {
    const json::value* const value = results.if_contains(key);
    return value != nullptr && value->is_int64() ? static_cast<std::uint64_t>(value->get_int64())
                                                 : 0;
}

// ---- status, nodes --------------------------------------------------------------------------------

int status(const Options& options) {
    const auto said = ask_admin(options.admin, {.url = "/admin/kv/status"});
    const int shown = show(options, said, kv_status_text);
    if (shown != kDone) return shown;
    return all_did(*said) ? kDone : kFailed;
}

int list_nodes(const Options& options) {
    return show(options, ask_admin(options.admin, {.url = "/admin/kv/nodes"}), kv_members_text);
}

int add_node(const Options& options) {
    json::object node{{"url", options.url}};
    if (!options.http.empty()) node["http"] = options.http;
    if (!options.password_env.empty()) node["password_env"] = options.password_env;
    const auto said = ask_admin(
        options.admin, {.method = "POST", .url = "/admin/kv/nodes", .body = json::serialize(node)});
    const int shown = show(options, said, kv_added_text);
    if (shown != kDone) return shown;
    const json::value* const unreachable = said->if_contains("unreachable");
    const bool all_answer =
        unreachable != nullptr && unreachable->is_array() && unreachable->get_array().empty();
    if (all_answer) return kDone;
    return fail(kFailed, "it is added, and used as soon as it answers");
}

int remove_node(const Options& options) {
    return show(options,
                ask_admin(options.admin,
                          {.method = "DELETE",
                           .url = "/admin/kv/nodes?url=" + net::percent_encode(options.url)}),
                kv_members_text);
}

// ---- drop, pin, verify ----------------------------------------------------------------------------

int drop(const Options& options) {
    json::object order;
    if (!options.tenant.empty()) order["tenant"] = options.tenant;
    if (!options.retention.empty()) order["class"] = options.retention;
    if (!options.names.empty()) order["name"] = options.names.front();
    if (order.empty()) return fail(kWrongUse, "say what to drop: --tenant, --class or --name");
    return give_order(options, "/admin/kv/drop", order, "dropped", "could not be",
                      [](const json::object& said) { return count(said, "failed") == 0; });
}

/// The chat whose beginning is meant.
Result<json::value> read_chat(const Options& options) {
    if (options.file.empty())
        return json::value{{"messages", {{{"role", "system"}, {"content", options.prompt}}}}};
    const auto text = read_small_file(options.file, limits::kBodyBytes);
    if (!text) return std::unexpected(text.error());
    boost::system::error_code error;
    json::value chat = json::parse(*text, error);
    if (!error && chat.is_object()) return chat;
    return std::unexpected(Error::invalid("is no JSON object", options.file));
}

int pin(const Options& options) {
    const int ways =
        static_cast<int>(!options.id.empty()) + static_cast<int>(!options.prompt.empty()) +
        static_cast<int>(!options.file.empty()) + static_cast<int>(!options.names.empty());
    if (ways != 1) return fail(kWrongUse, "say what to pin: ID, --system, --request or --name");
    const auto time = parse_duration(options.time);
    if (!time) return fail(kWrongUse, time.error());
    constexpr std::chrono::hours kMost(limits::kKvPinSeconds / 3'600);
    if (*time > kMost)
        return fail(kWrongUse,
                    fmt::format("--for: at most {}h, and {} is more", kMost.count(), options.time));
    json::object order{{"seconds", std::chrono::ceil<std::chrono::seconds>(*time).count()}};
    if (!options.id.empty()) order["id"] = options.id;
    if (!options.names.empty())
        order["names"] = json::array(options.names.begin(), options.names.end());
    if (!options.prompt.empty() || !options.file.empty()) {
        auto chat = read_chat(options);
        if (!chat) return fail(kWrongUse, chat.error());
        order["request"] = std::move(*chat);
    }
    if (!options.tenant.empty()) order["tenant"] = options.tenant;
    if (!options.conversation.empty()) order["conversation"] = options.conversation;
    // Each block is named in every class, so that some names fit nothing; all of them is too many.
    return give_order(options, "/admin/kv/pin", order, time->count() == 0 ? "unpinned" : "pinned",
                      "", [](const json::object& said) { return count(said, "done") > 0; });
}

int verify(const Options& options) {
    return give_order(
        options, "/admin/kv/verify", {}, "checked", "corrupt",
        [](const json::object& said) { return count(said, "failed") == 0; }, port::kKvVerifyTime);
}

// ---- Their options --------------------------------------------------------------------------------

std::shared_ptr<Options> common_options(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    add_admin_options(verb, options->admin, "Print one JSON object");
    return options;
}

Run define_status(CLI::App& verb) {
    auto options = common_options(verb);
    return [options] { return status(*options); };
}

Run define_list(CLI::App& verb) {
    auto options = common_options(verb);
    return [options] { return list_nodes(*options); };
}

Run define_add(CLI::App& verb) {
    auto options = common_options(verb);
    verb.add_option("node", options->url, "redis://, rediss:// (TLS) or redis+cluster://HOST:PORT")
        ->required()
        ->type_name("URL");
    verb.add_option("--http", options->http,
                    "Of `sluice kvnode`: where it says what it holds; else it is a foreign server")
        ->type_name("URL");
    verb.add_option("--password-env", options->password_env,
                    "The variable of the gateway's environment that holds its password")
        ->type_name("NAME");
    return [options] { return add_node(*options); };
}

Run define_remove(CLI::App& verb) {
    auto options = common_options(verb);
    verb.add_option("node", options->url, "As `list` shows it")->required()->type_name("URL");
    return [options] { return remove_node(*options); };
}

constexpr auto kNodeVerbs = std::to_array<Command>({
    {"list", "Print the nodes that workers are told of", define_list},
    {"add", "From now on blocks are kept there, too", define_add},
    {"remove", "Ask a node for nothing more; it is not stopped", define_remove},
});

Run define_nodes(CLI::App& verb) { return define_verbs(verb, kNodeVerbs); }

Run define_drop(CLI::App& verb) {
    auto options = common_options(verb);
    verb.add_option("--tenant", options->tenant, "All blocks of a tenant, or")->type_name("NAME");
    verb.add_option("--class", options->retention,
                    "all of a class, agent or chat; of both: --tenant")
        ->check(CLI::IsMember({"agent", "chat"}))
        ->type_name("CLASS");
    verb.add_option("--name", options->names, "One block: kv:TENANT:CLASS:KEY")
        ->expected(1)
        ->type_name("NAME");
    return [options] { return drop(*options); };
}

Run define_pin(CLI::App& verb) {
    auto options = common_options(verb);
    verb.add_option("id", options->id, "A request of a short while ago, whose prompt is meant")
        ->type_name("ID");
    verb.add_option("--system", options->prompt, "A chat's system text")->type_name("TEXT");
    verb.add_option("--request", options->file, "A file: the body of a chat request")
        ->type_name("FILE");
    verb.add_option("--name", options->names, "Blocks, one or several: kv:TENANT:CLASS:KEY")
        ->type_name("NAME");
    verb.add_option("--tenant", options->tenant, "Whose chat it is; without keys: default")
        ->type_name("NAME");
    verb.add_option("--conversation", options->conversation,
                    "As in x-sluice-conversation, for a tenant that shares by session")
        ->type_name("KEY");
    verb.add_option("--for", options->time, "How long, from now; 0s ends it")
        ->type_name("TIME")
        ->capture_default_str();
    return [options] { return pin(*options); };
}

Run define_verify(CLI::App& verb) {
    auto options = common_options(verb);
    return [options] { return verify(*options); };
}

constexpr auto kVerbs = std::to_array<Command>({
    {"status", "What each worker and node holds, for whom, and what it was good for",
     define_status},
    {"nodes", "Which cache nodes there are: list, add, remove", define_nodes},
    {"drop", "Forget the blocks of a tenant or a class, everywhere", define_drop},
    {"pin", "Keep a prefix for a time, whatever else would have its room", define_pin},
    {"verify", "Read all blocks again, and drop what is damaged", define_verify},
});

}  // namespace

Run define_ctl_kv(CLI::App& verb) { return define_verbs(verb, kVerbs); }

}  // namespace sluice::app
