#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/admission_options.h"
#include "app/command.h"
#include "app/stable_pool.h"
#include "base/fault_points.h"
#include "base/log.h"
#include "base/nearest.h"
#include "discovery/worker_entry.h"
#include "gateway/gateway_process.h"

namespace sluice::app {
namespace {

struct Options {
    std::string config;
    std::optional<std::uint16_t> port;
    std::optional<std::uint16_t> admin_port;
    std::optional<std::string> model;
    std::vector<std::string> workers;
    std::string keys;
    std::string records;
    std::string state;
    std::vector<std::string> kv_nodes;
    bool json = false;
};

void announce(std::string_view event, const gateway::GatewayAddresses& addresses, bool json) {
    if (json) {
        const boost::json::object line{{"event", event},
                                       {"url", addresses.url},
                                       {"admin", addresses.admin},
                                       {"pid", getpid()}};
        print(boost::json::serialize(line) + "\n");
    } else {
        print(fmt::format("{} on {} (admin {})\n", event, addresses.url, addresses.admin));
    }
    std::fflush(stdout);
}

net::HttpServerOptions server_options(const HostPort& address, std::optional<std::uint16_t> port) {
    net::HttpServerOptions options;
    options.address = address.host;
    options.port = port.value_or(address.port);
    return options;
}

/// The --worker flags; an error names one that is wrong, or of a pool that is not there.
Result<std::vector<discovery::WorkerEntry>> static_workers(const Options& options,
                                                           const ServiceConfig& config) {
    const std::vector<std::string> names = pool_names(config);
    const std::vector<std::string_view> known(names.begin(), names.end());
    std::vector<discovery::WorkerEntry> workers;
    for (const std::string& text : options.workers) {
        auto worker = discovery::parse_worker(text, *stable_pool(config).name);
        if (!worker)
            return std::unexpected(Error::invalid(
                fmt::format("{}: {}", text, worker.error().to_string()), "--worker"));
        if (std::ranges::find(known, worker->pool) == known.end()) {
            return std::unexpected(
                Error::invalid(fmt::format("there is no pool '{}'{}", worker->pool,
                                           did_you_mean(worker->pool, known)),
                               "--worker"));
        }
        workers.push_back(std::move(*worker));
    }
    return workers;
}

gateway::CacheIsolation isolation_of(const PoolConfig& pool) {
    if (pool.shares_cache()) return gateway::CacheIsolation::kShared;
    return pool.serves_one_tenant() ? gateway::CacheIsolation::kNone
                                    : gateway::CacheIsolation::kSalt;
}

/// The key that a pool's engines ask for; an error if its variable is not set.
Result<std::string> api_key_of(const PoolConfig& pool) {
    const std::string& variable = *pool.upstream.api_key_env;
    if (variable.empty()) return std::string();
    const char* const key = std::getenv(variable.c_str());
    if (key != nullptr && *key != '\0') return std::string(key);
    return std::unexpected(Error::invalid(
        fmt::format("pool {} takes its key from ${}, which is not set", *pool.name, variable),
        pool.upstream.api_key_env.place));
}

Result<gateway::UpstreamPoolOptions> upstream_options(const PoolConfig& pool) {
    auto key = api_key_of(pool);
    if (!key) return std::unexpected(key.error());
    const UpstreamConfig& upstream = pool.upstream;
    return gateway::UpstreamPoolOptions{
        .name = *pool.name,
        .engine = *pool.engine,
        .urls = *upstream.urls,
        .api_key = std::move(*key),
        .model = *upstream.model,
        .upstream_model = *upstream.upstream_model,
        .max_concurrency = static_cast<std::uint32_t>(*upstream.max_concurrency),
        .usage = *upstream.usage == "always" ? gateway::UsagePolicy::kAlways
                                             : gateway::UsagePolicy::kAsAsked,
        .isolation = isolation_of(pool),
        .times = {.connect_time = *upstream.connect_timeout,
                  .first_time = *upstream.first_token_timeout,
                  .stall_time = *upstream.stall_timeout}};
}

gateway::NativePoolSetup native_setup(const PoolConfig& pool, const Options& options,
                                      const std::string& stable,
                                      const std::vector<discovery::WorkerEntry>& workers) {
    gateway::NativePoolSetup setup{
        .name = *pool.name,
        .model = *pool.native.model,
        .thinking = *pool.native.thinking ? protocol::Thinking::kOn : protocol::Thinking::kOff,
        .workers = {},
        .stall_time = *pool.native.stall_timeout};
    if (setup.name == stable && options.model) setup.model = *options.model;
    for (const discovery::WorkerEntry& worker : workers)
        if (worker.pool == setup.name) setup.workers.push_back(worker);
    if (!setup.workers.empty()) return setup;  // Flags override the file.
    for (const std::string& text : *pool.native.urls) {
        const bool named = text.find('=') != std::string::npos;
        const auto worker =
            discovery::parse_worker(setup.name + (named ? "/" : "=") + text, setup.name);
        if (worker) setup.workers.push_back(*worker);  // The configuration was checked.
    }
    return setup;
}

gateway::RecordSetup record_setup(const Options& options, const ServiceConfig& config) {
    const RecordConfig& record = config.record;
    gateway::RecordSetup setup{
        .folder = options.records.empty() ? record.path->value_or("") : options.records,
        .retention_age = *record.retention_age,
        .retention_bytes = *record.retention_bytes,
        .access_log = *record.access_log};
    for (const PoolConfig& pool : config.pools) setup.prices[*pool.name] = *pool.price_hour;
    const char* const endpoint = std::getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    setup.otlp_endpoint = record.otlp_endpoint->value_or(endpoint == nullptr ? "" : endpoint);
    return setup;
}

Result<gateway::PlanServiceOptions> plan_options(const Options& options,
                                                 const ServiceConfig& config) {
    gateway::PlanServiceOptions plan{
        .plan = *traffic_plan(config), .pools = pool_names(config), .state_folder = options.state};
    const bool keeps_nothing = plan.plan.splits.empty() && plan.plan.shadows.empty();
    if (!options.state.empty() || keeps_nothing) return plan;
    return std::unexpected(Error::invalid(
        "a plan with splits or shadows needs --state, a folder in which a rollback is kept"));
}

/// The plan that the file has now; its pools can't change while the gateway runs.
Result<traffic::Plan> reread_plan(const std::string& file, const std::vector<std::string>& pools) {
    const auto config = read_config(file);
    if (!config) return std::unexpected(config.error().front());
    if (pool_names(*config) == pools) return *traffic_plan(*config);
    return std::unexpected(Error::invalid("other pools need a restart", file));
}

/// Those of the file, and of --kv-node.
Result<std::vector<gateway::KvNode>> kv_nodes(const Options& options, const KvConfig& config) {
    std::vector<gateway::KvNode> nodes;
    for (const KvNodeConfig& node : config.nodes)
        nodes.push_back({.url = *node.url,
                         .http = node.http->value_or(""),
                         .password_env = *node.password_env});
    for (const std::string& text : options.kv_nodes) {
        const std::size_t comma = text.rfind(",http");
        const bool has_http = comma != std::string::npos;
        nodes.push_back({.url = text.substr(0, comma),
                         .http = has_http ? text.substr(comma + 1) : std::string()});
    }
    for (const gateway::KvNode& node : nodes) {
        if (const auto good = gateway::check_kv_node(node); !good)
            return std::unexpected(good.error().within("--kv-node"));
        // Better now than in the middle of the night, when the first worker asks.
        if (const auto url = gateway::url_with_password(node); !url)
            return std::unexpected(url.error());
    }
    return nodes;
}

Result<gateway::GatewayProcessOptions> process_options(const Options& options,
                                                       const ServiceConfig& config) {
    const auto workers = static_workers(options, config);
    if (!workers) return std::unexpected(workers.error());
    auto plan = plan_options(options, config);
    if (!plan) return std::unexpected(plan.error());
    const std::string& stable = *stable_pool(config).name;
    gateway::GatewayProcessOptions process;
    const auto faults = fault_points_of_environment();
    if (!faults) return std::unexpected(faults.error());
    if (faults->any()) log::warn("faults are planted on purpose: SLUICE_FAULTS is set");
    process.gateway.faults = *faults;
    process.plan = std::move(*plan);
    if (!options.config.empty())
        process.read_plan = [file = options.config, pools = process.plan.pools] {
            return reread_plan(file, pools);
        };
    process.gateway.listen = server_options(*config.gateway.listen, options.port);
    process.gateway.admin = server_options(*config.gateway.admin, options.admin_port);
    process.records = record_setup(options, config);
    process.protection = {
        .keys_file = options.keys.empty() ? config.gateway.keys->value_or("") : options.keys,
        .open = config.gateway.open->has_value(),
        .tls_certificate = config.gateway.tls_certificate->value_or(""),
        .tls_key = config.gateway.tls_key->value_or(""),
        .tls_admin = *config.gateway.tls_admin};
    process.admission = admission_options(config);
    auto nodes = kv_nodes(options, config.kv);
    if (!nodes) return std::unexpected(nodes.error());
    process.gateway.kv_nodes = std::move(*nodes);
    if (!options.state.empty()) process.gateway.kv_members_file = options.state + "/kv_nodes.json";
    process.gateway.headers_after = *config.gateway.headers_after;
    process.gateway.stable = stable;
    process.gateway.etcd = {.endpoints = *config.discovery.etcd,
                            .prefix = *config.discovery.prefix};
    process.gateway.ca_file = config.gateway.ca_bundle->value_or("");
    for (const PoolConfig& pool : config.pools) {
        if (pool.is_native()) {
            process.native.push_back(native_setup(pool, options, stable, *workers));
            if (process.native.back().workers.empty() && config.discovery.etcd->empty())
                log::warn("pool {} has no worker yet: see --worker, or `sluice engine --register`",
                          *pool.name);
            continue;
        }
        auto upstream = upstream_options(pool);
        if (!upstream) return std::unexpected(upstream.error());
        process.gateway.upstream_pools.push_back(std::move(*upstream));
    }
    return process;
}

int run(const Options& options) {
    const auto config = read_config(options.config);
    if (!config) return fail_config(config.error());
    if (const auto logging = log::configure_from_environment("gateway"); !logging)
        return fail(kWrongUse, logging.error());
    auto process = process_options(options, *config);
    if (!process) return fail(kWrongUse, process.error());
    const bool json = options.json;
    const auto ended = gateway::run_gateway(
        std::move(*process),
        {.on_listening =
             [json](const gateway::GatewayAddresses& at) { announce("listening", at, json); },
         .on_ready = [json](const gateway::GatewayAddresses& at) { announce("ready", at, json); }});
    if (!ended) return fail(kCannotStart, ended.error());
    return *ended == SIGINT ? kInterrupted : kDone;
}

}  // namespace

Run define_gateway(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.add_option("--config", options->config, "Configuration file")->type_name("FILE");
    command.add_option("--port", options->port, "Port for clients; 0 takes a free one")
        ->type_name("N");
    command
        .add_option("--admin-port", options->admin_port,
                    "Port for /metrics and administration; 0 takes a free one")
        ->type_name("N");
    command
        .add_option("--model", options->model,
                    "GGUF file whose tokenizer and prompt format are used, or krill")
        ->type_name("FILE");
    command
        .add_option(
            "--worker", options->workers,
            "URL of an engine, of the stable pool or of the one named, for everything or for\n"
            "one phase, prefill or decode; may be given again")
        ->type_name("[POOL[/PHASE]=]URL");
    command.add_option("--keys", options->keys, "File of API keys, as `sluice ctl keys` makes it")
        ->type_name("FILE");
    command.add_option("--records", options->records, "Folder for records; else [record] path")
        ->type_name("DIR");
    command
        .add_option("--state", options->state,
                    "A folder that is there, for the state of the traffic plan and its audit log")
        ->check(CLI::ExistingDirectory)
        ->type_name("DIR");
    command
        .add_option("--kv-node", options->kv_nodes,
                    "A cache node beside those of the file, and of `sluice kvnode` where it says\n"
                    "what it holds; may be given again")
        ->type_name("URL[,HTTP]");
    command.add_flag("--json", options->json, "Announce addresses as JSON, an object a line");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
