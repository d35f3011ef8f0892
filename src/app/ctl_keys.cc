#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "app/command.h"
#include "app/key_file.h"
#include "app/stable_pool.h"
#include "base/secure_random.h"
#include "base/units.h"

namespace sluice::app {
namespace {

using admission::ApiKey;
using admission::KeyTable;
using admission::UnixTime;

namespace json = boost::json;

struct Options {
    std::string config;
    std::string state;
    std::string tenant = "default";
    std::string name;
    std::string expires_in;
    std::string id;
    bool admin = false;
    bool json = false;
};

UnixTime now() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// The file and what the configuration says of tenants, or the exit code of the complaint.
std::expected<std::pair<std::string, ServiceConfig>, int> find_file(const Options& options) {
    auto config = read_config(options.config);
    if (!config) return std::unexpected(fail_config(config.error()));
    const auto folder = StateFolder::find(options.state);
    if (!folder) return std::unexpected(fail(kWrongUse, folder.error()));
    return std::pair(key_file_path(*config, *folder), *std::move(config));
}

std::string date(UnixTime time) { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(time)); }

std::string state_of(const ApiKey& key, UnixTime at) {
    if (key.revoked) return "revoked " + date(*key.revoked);
    if (!key.expires) return "valid";
    return (key.valid_at(at) ? "until " : "expired ") + date(*key.expires);
}

json::object to_object(const ApiKey& key) {
    const auto time = [](const std::optional<UnixTime>& value) {
        return value ? json::value(*value) : json::value(nullptr);
    };
    return {{"id", key.id},
            {"tenant", key.tenant},
            {"name", key.name},
            {"admin", key.admin},
            {"created", key.created},
            {"expires", time(key.expires)},
            {"revoked", time(key.revoked)}};
}

/// A tenant without a table of its own is no mistake, but may be a misspelt one.
void mention_unknown_tenant(const ServiceConfig& config, const Options& options) {
    const auto named = [&](const TenantConfig& tenant) { return *tenant.name == options.tenant; };
    if (config.tenants.empty() || std::ranges::any_of(config.tenants, named)) return;
    fail(kDone, fmt::format("note: the configuration has no [[tenant]] \"{}\", so it has no limits",
                            options.tenant));
}

int add(const Options& options) {
    const auto file = find_file(options);
    if (!file) return file.error();
    admission::KeyWish wish{.tenant = options.tenant, .name = options.name, .admin = options.admin};
    if (!options.expires_in.empty()) {
        const auto period = parse_duration(options.expires_in);
        if (!period) return fail(kWrongUse, period.error().within("--expires-in"));
        wish.expires = now() + std::chrono::floor<std::chrono::seconds>(*period).count();
    }
    std::array<std::uint8_t, admission::kKeyEntropyBytes> entropy{};
    fill_secure_random(entropy);
    std::string text;
    const auto added = change_keys(file->first, [&](KeyTable& table) -> Result<void> {
        auto made = table.add(wish, entropy, now());
        if (!made) return std::unexpected(made.error());
        text = *std::move(made);
        return {};
    });
    if (!added) {
        const bool refused = added.error().code() == ErrorCode::kInvalid ||
                             added.error().code() == ErrorCode::kOutOfRange;
        return fail(refused ? kWrongUse : kFailed, added.error());
    }
    mention_unknown_tenant(file->second, options);
    if (options.json) {
        print(json::serialize(json::object{{"id", *admission::key_id(text)}, {"key", text}}) +
              "\n");
    } else {
        // The key alone on stdout: `KEY=$(sluice ctl keys add)`.
        fail(kDone, "this key is shown only now; what is kept is its hash, in " + file->first);
        print(text + "\n");
    }
    return kDone;
}

int list(const Options& options) {
    const auto file = find_file(options);
    if (!file) return file.error();
    const auto table = read_keys(file->first);
    if (!table) return fail(kFailed, table.error());
    if (options.json) {
        json::array keys;
        for (const ApiKey& key : table->keys()) keys.push_back(to_object(key));
        print(json::serialize(keys) + "\n");
        return kDone;
    }
    if (table->keys().empty()) {
        fail(kDone, "no keys in " + file->first);
        return kDone;
    }
    std::size_t width = 6;
    for (const ApiKey& key : table->keys()) width = std::max(width, key.tenant.size());
    print(fmt::format("{:<16}  {:<{}}  {:<5}  {:<10}  {:<18}  name\n", "id", "tenant", width,
                      "admin", "created", "state"));
    for (const ApiKey& key : table->keys()) {
        print(fmt::format("{:<16}  {:<{}}  {:<5}  {:<10}  {:<18}  {}\n", key.id, key.tenant, width,
                          key.admin ? "yes" : "no", date(key.created), state_of(key, now()),
                          key.name));
    }
    return kDone;
}

int revoke(const Options& options) {
    const auto file = find_file(options);
    if (!file) return file.error();
    const auto revoked =
        change_keys(file->first, [&](KeyTable& table) { return table.revoke(options.id, now()); });
    if (!revoked) return fail(kFailed, revoked.error());
    if (!options.json) print("revoked " + options.id + "\n");
    if (options.json) print(json::serialize(json::object{{"revoked", options.id}}) + "\n");
    return kDone;
}

std::shared_ptr<Options> common_options(CLI::App& verb, const std::string& json_help) {
    auto options = std::make_shared<Options>();
    verb.add_option("--config", options->config, "Configuration file, whose keys are meant")
        ->type_name("FILE");
    verb.add_option("--state", options->state, "State folder of the service, if no file names them")
        ->type_name("DIR");
    verb.add_flag("--json", options->json, json_help);
    return options;
}

Run define_add(CLI::App& verb) {
    auto options = common_options(verb, "Print one JSON object: id, key");
    verb.add_option("--tenant", options->tenant, "In whose name requests are made")
        ->type_name("NAME")
        ->capture_default_str();
    verb.add_option("--name", options->name, "Who uses it, for people")->type_name("TEXT");
    verb.add_option("--expires-in", options->expires_in, "How long it is valid, such as 90d")
        ->type_name("TIME");
    verb.add_flag("--admin", options->admin, "May use the admin address, too");
    return [options] { return add(*options); };
}

Run define_list(CLI::App& verb) {
    auto options = common_options(verb, "Print one JSON array");
    return [options] { return list(*options); };
}

Run define_revoke(CLI::App& verb) {
    auto options = common_options(verb, "Print one JSON object: revoked");
    verb.add_option("id", options->id, "The key's id, as `list` shows it")->required();
    return [options] { return revoke(*options); };
}

constexpr auto kVerbs = std::to_array<Command>({
    {"add", "Make a key and print it, once", define_add},
    {"list", "Print every key but its secret", define_list},
    {"revoke", "Make a key useless, at once and for good", define_revoke},
});

}  // namespace

Run define_ctl_keys(CLI::App& verb) {
    Run run = define_verbs(verb, kVerbs);
    // After the verbs, which would inherit it.
    verb.footer(
        "Works on the file; a running gateway notices within a second or two.\n"
        "No key is kept or logged anywhere: only its SHA-256 is.");
    return run;
}

}  // namespace sluice::app
