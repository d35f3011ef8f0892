#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "app/command.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/units.h"
#include "kvnode/node_process.h"

namespace sluice::app {
namespace {

constexpr std::size_t kPasswordBytes = 4'096;
constexpr std::uint64_t kDramLeast = 1024 * 1024;

struct Options {
    std::uint16_t port = 7301;
    std::optional<std::uint16_t> http_port;
    std::string address = "127.0.0.1";
    std::string dram = "4GiB";
    std::string ssd;
    std::string retain;
    std::string tenant_bytes = "0B";
    std::string password_file;
    std::string tls_cert;
    std::string tls_key;
    bool json = false;
};

std::unexpected<Error> at(const Error& error, std::string flag) {
    return std::unexpected(Error(error.code(), error.message(), std::move(flag)));
}

/// "DIR:100GiB"; the folder's own name may have colons.
Result<std::optional<kv::SsdOptions>> ssd_options(const std::string& text,
                                                  const FaultPoints& faults) {
    if (text.empty()) return std::nullopt;
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) {
        return std::unexpected(
            Error::invalid("must be a folder and a size, as in /var/kv:100GiB", "--ssd"));
    }
    const auto bytes = parse_bytes(text.substr(colon + 1));
    if (!bytes) return at(bytes.error(), "--ssd");
    return kv::SsdOptions{.dir = text.substr(0, colon), .bytes = *bytes, .faults = faults};
}

Result<std::string> read_password(const std::string& file) {
    if (file.empty()) return std::string();
    auto text = read_small_file(file, kPasswordBytes);
    if (!text) return std::unexpected(text.error());
    while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
    if (text->empty()) return std::unexpected(Error::invalid("is empty", file));
    return text;
}

/// All but the password.
Result<kvnode::NodeOptions> node_options(const Options& options) {
    kvnode::NodeOptions node;
    const auto faults = fault_points_of_environment();
    if (!faults) return std::unexpected(faults.error());
    node.faults = *faults;
    node.address = options.address;
    node.port = options.port;
    if (options.http_port) {
        node.http_port = *options.http_port;
    } else if (options.port != 0) {
        if (options.port > 65'435)
            return std::unexpected(Error::invalid("say which, beside such a port", "--http-port"));
        node.http_port = static_cast<std::uint16_t>(options.port + 100);
    }
    const auto dram = parse_bytes(options.dram);
    if (!dram) return at(dram.error(), "--dram");
    if (*dram < kDramLeast)
        return std::unexpected(Error::invalid("must be at least 1MiB", "--dram"));
    const auto tenant = parse_bytes(options.tenant_bytes);
    if (!tenant) return at(tenant.error(), "--tenant-bytes");
    node.store.dram = {.bytes = *dram, .tenant_bytes = *tenant, .retention = {}};
    if (!options.retain.empty()) {
        const auto times = kv::parse_retention_times(options.retain);
        if (!times) return at(times.error(), "--retain");
        node.store.dram.retention = *times;
    }
    auto ssd = ssd_options(options.ssd, *faults);
    if (!ssd) return std::unexpected(ssd.error());
    node.store.ssd = std::move(*ssd);
    if (options.tls_cert.empty() != options.tls_key.empty())
        return std::unexpected(Error::invalid("go together", "--tls-cert, --tls-key"));
    node.tls_cert = options.tls_cert;
    node.tls_key = options.tls_key;
    return node;
}

std::string gib(std::uint64_t bytes) {
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1ULL << 30));
}

/// Of the file system that `folder` is on, or will be; 0 if nobody says.
std::uint64_t disk_bytes(std::filesystem::path folder) {
    std::error_code error;
    folder = std::filesystem::absolute(folder, error);
    while (!std::filesystem::exists(folder, error) && folder.has_relative_path())
        folder = folder.parent_path();
    const auto space = std::filesystem::space(folder, error);
    return error ? 0 : space.capacity;
}

/// Sizes are limits, which may be too large for a while; they are said to whoever meant another one.
void warn_of_sizes(const kvnode::NodeStore::Options& store) {
    const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    if (store.dram.bytes > memory) {
        log::warn("--dram may take {}, and this machine has {} of memory", gib(store.dram.bytes),
                  gib(memory));
    }
    if (!store.ssd) return;
    const std::uint64_t disk = disk_bytes(store.ssd->dir);
    if (disk != 0 && store.ssd->bytes > disk) {
        log::warn("--ssd may take {}, and the file system of {} has {}", gib(store.ssd->bytes),
                  store.ssd->dir, gib(disk));
    }
}

std::string host_of(const std::string& address) {
    const bool v6 = address.find(':') != std::string::npos && address.front() != '[';
    return v6 ? "[" + address + "]" : address;
}

void announce(const Options& options, std::uint16_t port, std::uint16_t http_port) {
    const bool tls = !options.tls_cert.empty();
    const std::string host = host_of(options.address);
    const std::string url = fmt::format("{}://{}:{}", tls ? "rediss" : "redis", host, port);
    const std::string http = fmt::format("{}://{}:{}", tls ? "https" : "http", host, http_port);
    if (options.json) {
        const boost::json::object line{
            {"event", "ready"}, {"url", url}, {"http", http}, {"pid", getpid()}};
        print(boost::json::serialize(line) + "\n");
    } else {
        print(fmt::format("ready on {} ({})\n", url, http));
    }
    std::fflush(stdout);
}

int run(const Options& options) {
    if (const auto logging = log::configure_from_environment("kvnode"); !logging)
        return fail(kWrongUse, logging.error());
    auto node = node_options(options);
    if (!node) return fail(kWrongUse, node.error());
    if (node->faults.any()) log::warn("faults are planted on purpose: SLUICE_FAULTS is set");
    warn_of_sizes(node->store);
    auto password = read_password(options.password_file);
    if (!password) return fail(kCannotStart, password.error());
    node->password = std::move(*password);
    node->on_ready = [&options](std::uint16_t port, std::uint16_t http_port) {
        announce(options, port, http_port);
    };
    const auto ended = kvnode::run_node(std::move(*node));
    if (!ended) return fail(kCannotStart, ended.error());
    return *ended == SIGINT ? kInterrupted : kDone;
}

void define_places(CLI::App& command, Options& options) {
    command.add_option("--bind", options.address, "Numeric address to listen on")
        ->type_name("IP")
        ->capture_default_str();
    command.add_option("--port", options.port, "Port for RESP clients; 0 takes a free one")
        ->type_name("N")
        ->capture_default_str();
    command
        .add_option("--http-port", options.http_port,
                    "Port for metrics, events and orders; default: 100 above the other, or a free "
                    "one if that is 0")
        ->type_name("N");
    command
        .add_option("--password-file", options.password_file,
                    "What clients must say by AUTH; needed where others reach the address")
        ->type_name("FILE");
    command
        .add_option("--tls-cert", options.tls_cert, "Certificate in PEM; TLS only, on both ports")
        ->type_name("FILE");
    command.add_option("--tls-key", options.tls_key, "Its private key")->type_name("FILE");
    command.add_flag("--json", options.json, "Announce addresses as JSON, an object a line");
}

}  // namespace

Run define_kvnode(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command.add_option("--dram", options->dram, "Memory for values, with all that they take")
        ->type_name("BYTES")
        ->capture_default_str();
    command
        .add_option("--ssd", options->ssd,
                    "Folder for what memory doesn't hold, or a restart should find, and what all "
                    "its files may take: /var/kv:100GiB")
        ->type_name("DIR:BYTES");
    command
        .add_option("--retain", options->retain,
                    "How long unused blocks are kept; default agent=72h,chat=168h")
        ->type_name("TIMES");
    command
        .add_option("--tenant-bytes", options->tenant_bytes,
                    "Of memory, what one tenant's blocks may take; 0B: all")
        ->type_name("BYTES")
        ->capture_default_str();
    define_places(command, *options);
    return [options] { return run(*options); };
}

}  // namespace sluice::app
