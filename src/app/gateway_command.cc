#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "app/admission_options.h"
#include "app/command.h"
#include "app/stable_pool.h"
#include "base/log.h"
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

gateway::GatewayProcessOptions process_options(const Options& options,
                                               const ServiceConfig& config) {
    const PoolConfig& pool = stable_pool(config);
    gateway::GatewayProcessOptions process;
    process.gateway.listen = server_options(*config.gateway.listen, options.port);
    process.gateway.admin = server_options(*config.gateway.admin, options.admin_port);
    process.gateway.stable = *pool.name;
    process.native.push_back(
        {.name = *pool.name,
         .model = options.model.value_or(*pool.model),
         .thinking = *pool.thinking ? protocol::Thinking::kOn : protocol::Thinking::kOff,
         .urls = options.workers});
    process.protection = {
        .keys_file = options.keys.empty() ? config.gateway.keys->value_or("") : options.keys,
        .open = config.gateway.open->has_value(),
        .tls_certificate = config.gateway.tls_certificate->value_or(""),
        .tls_key = config.gateway.tls_key->value_or(""),
        .tls_admin = *config.gateway.tls_admin};
    process.gateway.ca_file = config.gateway.ca_bundle->value_or("");
    process.admission = admission_options(config);
    process.gateway.headers_after = *config.gateway.headers_after;
    return process;
}

int run(const Options& options) {
    const auto config = read_config(options.config);
    if (!config) return fail_config(config.error());
    if (options.workers.empty()) {
        return fail(kWrongUse,
                    "a gateway needs at least one --worker URL; `sluice up` starts both");
    }
    if (const auto logging = log::configure_from_environment("gateway"); !logging)
        return fail(kWrongUse, logging.error());
    const bool json = options.json;
    const auto ended = gateway::run_gateway(
        process_options(options, *config),
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
    command.add_option("--worker", options->workers, "URL of an engine; may be given again")
        ->type_name("URL");
    command.add_option("--keys", options->keys, "File of API keys, as `sluice ctl keys` makes it")
        ->type_name("FILE");
    command.add_flag("--json", options->json, "Announce addresses as JSON, an object a line");
    return [options] { return run(*options); };
}

}  // namespace sluice::app
