#include "app/kv_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "base/units.h"

namespace sluice::app {
namespace {

std::unexpected<Error> at(const Error& error, std::string flag) {
    return std::unexpected(Error(error.code(), error.message(), std::move(flag)));
}

}  // namespace

void define_kv(CLI::App& command, KvFlags& flags) {
    command
        .add_option("--kv-dram", flags.dram,
                    "Memory for blocks that have left the pool, as in 4GiB")
        ->type_name("BYTES")
        ->capture_default_str();
    command
        .add_option("--kv-tenant-bytes", flags.tenant_bytes,
                    "Of that, what one tenant may take; 0B: all")
        ->type_name("BYTES")
        ->capture_default_str();
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
    command.add_option("--kv-replicas", flags.replicas, "Cache nodes that get each block")
        ->check(CLI::Range(1, 16))
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--kv-reuse", flags.reuse,
                    "Whose blocks are taken: exact, this build's; or compatible, those of all "
                    "builds that say they compute alike")
        ->check(CLI::IsMember({"exact", "compatible"}))
        ->type_name("KIND")
        ->capture_default_str();
    command
        .add_option("--kv-force", flags.force,
                    "For tests: load or recompute, whatever is predicted to be sooner")
        ->check(CLI::IsMember({"load", "recompute"}))
        ->type_name("CHOICE");
}

Result<worker::KvOptions> kv_options(const KvFlags& flags) {
    worker::KvOptions options;
    const auto dram = parse_bytes(flags.dram);
    if (!dram) return at(dram.error(), "--kv-dram");
    const auto tenant_bytes = parse_bytes(flags.tenant_bytes);
    if (!tenant_bytes) return at(tenant_bytes.error(), "--kv-tenant-bytes");
    if (!flags.retain.empty()) {
        const auto times = kv::parse_retention_times(flags.retain);
        if (!times) return at(times.error(), "--kv-retain");
        options.retention = *times;
    }
    options.dram_bytes = *dram;
    options.tenant_bytes = *tenant_bytes;
    options.stores = flags.stores;
    options.replicas = flags.replicas;
    options.compatible_builds = flags.reuse == "compatible";
    if (flags.force == "load") options.forced = kv::ForcedChoice::kLoad;
    if (flags.force == "recompute") options.forced = kv::ForcedChoice::kRecompute;
    return options;
}

}  // namespace sluice::app
