#include "app/kv_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "base/units.h"
#include "kvnode/store_url.h"

namespace sluice::app {
namespace {

std::unexpected<Error> at(const Error& error, std::string flag) {
    return std::unexpected(Error(error.code(), error.message(), std::move(flag)));
}

Result<std::uint64_t> bytes_of(const std::optional<std::string>& flag, std::uint64_t configured,
                               const char* name) {
    if (!flag) return configured;
    const auto bytes = parse_bytes(*flag);
    if (!bytes) return at(bytes.error(), name);
    return *bytes;
}

/// With the password that the environment holds.
Result<std::string> url_of(const KvNodeConfig& node) {
    if (node.password_env->empty()) return *node.url;
    const char* const password = std::getenv(node.password_env->c_str());
    if (password == nullptr)
        return std::unexpected(Error::invalid(
            fmt::format("the environment has no {}", *node.password_env), node.password_env.place));
    auto url = kvnode::parse_store_url(*node.url);
    if (!url) return at(url.error(), node.url.place);
    url->password = password;
    return kvnode::to_text(*url);
}

Result<std::vector<std::string>> stores_of(const KvFlags& flags, const KvConfig& config) {
    if (!flags.stores.empty()) return flags.stores;
    std::vector<std::string> stores;
    for (const KvNodeConfig& node : config.nodes) {
        auto url = url_of(node);
        if (!url) return std::unexpected(url.error());
        stores.push_back(std::move(*url));
    }
    if (*config.directory) stores.push_back("dir://" + **config.directory);
    return stores;
}

}  // namespace

void define_kv(CLI::App& command, KvFlags& flags) {
    command
        .add_option("--kv-dram", flags.dram,
                    "Memory for blocks that have left the pool, as in 4GiB; else as [kv]\nof the "
                    "configuration says, as with all of these")
        ->type_name("BYTES");
    command
        .add_option("--kv-tenant-bytes", flags.tenant_bytes,
                    "Of that, what one tenant may take; 0B: all")
        ->type_name("BYTES");
    command
        .add_option("--kv-retain", flags.retain,
                    "How long unused blocks are kept, as in agent=72h,chat=168h")
        ->type_name("TIMES");
    command
        .add_option(
            "--kv-store", flags.stores,
            "Where blocks are kept outside of this process, once for each: redis://HOST:PORT\n"
            "for a cache node or a Redis, redis+cluster://HOST:PORT, rediss:// with TLS,\n"
            "dir:///PATH for a shared directory")
        ->type_name("URL");
    command
        .add_option("--kv-ca-bundle", flags.ca_bundle,
                    "PEM file of who vouches for rediss:// nodes; else the system's")
        ->type_name("FILE");
    command.add_option("--kv-replicas", flags.replicas, "Cache nodes that get each block")
        ->check(CLI::Range(1, 16))
        ->type_name("N");
    command
        .add_option("--kv-reuse", flags.reuse,
                    "Whose blocks are taken: exact, this build's; or compatible, those of all "
                    "builds that say they compute alike")
        ->check(CLI::IsMember({"exact", "compatible"}))
        ->type_name("KIND");
    command
        .add_option("--kv-force", flags.force,
                    "For tests: load or recompute, whatever is predicted to be sooner")
        ->check(CLI::IsMember({"load", "recompute"}))
        ->type_name("CHOICE");
}

Result<worker::KvOptions> kv_options(const KvFlags& flags, const KvConfig& config) {
    worker::KvOptions options;
    const auto dram = bytes_of(flags.dram, *config.dram, "--kv-dram");
    if (!dram) return std::unexpected(dram.error());
    const auto tenant_bytes =
        bytes_of(flags.tenant_bytes, *config.tenant_bytes, "--kv-tenant-bytes");
    if (!tenant_bytes) return std::unexpected(tenant_bytes.error());
    const auto stores = stores_of(flags, config);
    if (!stores) return std::unexpected(stores.error());
    options.retention = {.agent = *config.agent, .chat = *config.chat};
    if (flags.retain) {
        const auto times = kv::parse_retention_times(*flags.retain);
        if (!times) return at(times.error(), "--kv-retain");
        options.retention = *times;
    }
    options.dram_bytes = *dram;
    options.tenant_bytes = *tenant_bytes;
    options.stores = *stores;
    options.ca_file = flags.ca_bundle.value_or(config.ca_bundle->value_or(""));
    options.replicas = flags.replicas.value_or(static_cast<std::size_t>(*config.replicas));
    options.compatible_builds = flags.reuse.value_or(*config.reuse) == "compatible";
    const std::string force = flags.force.value_or(*config.force);
    if (force == "load") {
        options.forced = kv::ForcedChoice::kLoad;
        options.find_time = options.load_time;  // A busy machine finds what is there, too.
    }
    if (force == "recompute") options.forced = kv::ForcedChoice::kRecompute;
    return options;
}

}  // namespace sluice::app
