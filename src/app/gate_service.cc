#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/key_file.h"
#include "app/stable_pool.h"
#include "gates/service_gate.h"

namespace sluice::app {
namespace {

struct Options {
    std::string config;
    std::string owners;
    std::string state;
    bool fill_in = false;
    bool json = false;
};

/// Keys that can't be read stay unknown.
void look_at_keys(const Options& options, const ServiceConfig& config, gates::ServiceFacts& facts) {
    const auto folder = StateFolder::find(options.state);
    if (!folder) return;
    const auto table = read_keys(key_file_path(config, *folder));
    if (!table) return;
    std::set<std::string_view> tenants;
    for (const admission::ApiKey& key : table->keys()) tenants.insert(key.tenant);
    facts.keys = table->keys().size();
    facts.key_tenants = tenants.size();
}

/// Without a file nobody owns anything.
std::expected<gates::Owners, std::vector<Error>> owners_of(const Options& options,
                                                           const ServiceConfig& config) {
    if (options.owners.empty()) return gates::Owners{};
    std::vector<std::string_view> pools{gates::kWholeService};
    for (const PoolConfig& pool : config.pools) pools.push_back(*pool.name);
    return gates::load_owners(options.owners, pools);
}

int run(const Options& options) {
    const auto config = read_config(options.config);
    if (!config) return fail_config(config.error());
    const auto owners = owners_of(options, *config);
    if (!owners) {
        const bool unreadable = is_unreadable(owners.error().front());
        return fail(unreadable ? kCannotStart : kWrongUse, owners.error());
    }
    gates::ServiceFacts facts = gates::collect_service_facts(*config);
    look_at_keys(options, *config, facts);
    const gates::ServiceReport report = gates::check_service(*config, facts, *owners);
    if (options.fill_in) {
        print(gates::owners_template(report));
        return kDone;
    }
    print(options.json ? to_json(report) + "\n" : to_text(report));
    return report.passed() ? kDone : kFailed;
}

}  // namespace

Run define_gate_service(CLI::App& verb) {
    auto options = std::make_shared<Options>();
    verb.add_option("--config", options->config, "Configuration of the service; else the defaults")
        ->type_name("FILE");
    verb.add_option("--owners", options->owners,
                    "Who owns which failure, what catches it outside Sluice, and which layers the\n"
                    "team has of its own: TOML, see docs/gates.md")
        ->type_name("FILE");
    verb.add_option("--state", options->state, "State folder of the service; as given to `up`")
        ->type_name("DIR");
    verb.add_flag("--template", options->fill_in,
                  "Print an owners file with a row for each gap, to be filled in");
    verb.add_flag("--json", options->json, "Print one JSON object");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
