#include "app/up_kv_nodes.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>

#include "app/up_ports.h"
#include "base/durable_file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/units.h"

namespace sluice::app {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kAddress = "127.0.0.1";

std::string kv_folder(const StateFolder& folder) { return folder.path() + "/kv"; }
std::string ports_path(const StateFolder& folder) { return kv_folder(folder) + "/ports.json"; }

std::uint16_t port_of(std::string_view url) {
    const auto address = parse_host_port(url.substr(url.rfind('/') + 1));
    return address ? address->port : std::uint16_t{0};
}

/// By name of a node; empty if nothing is known, which costs no more than what the nodes hold.
json::object known_ports(const StateFolder& folder) {
    const auto text = read_if_there(ports_path(folder), limits::kServiceStateBytes);
    if (!text || !*text) return {};
    boost::system::error_code error;
    json::value value = json::parse(**text, error);
    if (!error && value.is_object()) return std::move(value.get_object());
    log::warn("{} is damaged: kv nodes get other ports", ports_path(folder));
    return {};
}

/// The port that was written down, if it is free; else 0, which takes another one.
std::uint16_t free_port(const json::object& known, std::string_view node, std::string_view which) {
    const json::value* const ports = known.if_contains(node);
    const json::value* const port =
        ports != nullptr && ports->is_object() ? ports->get_object().if_contains(which) : nullptr;
    if (port == nullptr || !port->is_int64()) return 0;
    const auto number = static_cast<std::uint16_t>(port->get_int64());
    if (number == 0 || check_port_free({kAddress, number})) return number;
    log::warn(
        "kv node {} can't have port {} again: it is taken, and what the node holds will not be "
        "found",
        node, number);
    return 0;
}

}  // namespace

Result<std::vector<KvNodePlan>> plan_kv_nodes(const ServiceConfig& config,
                                              const StateFolder& folder) {
    const KvConfig& kv = config.kv;
    const json::object known = known_ports(folder);
    std::vector<KvNodePlan> nodes;
    for (std::int64_t i = 0; i < *kv.start_nodes; ++i) {
        const std::string name = fmt::format("kv-{}", i);
        KvNodePlan& node = nodes.emplace_back(
            KvNodePlan{.name = name,
                       .folder = *kv.node_ssd > 0 ? kv_folder(folder) + "/" + name : "",
                       .dram = format_bytes(*kv.node_dram),
                       .ssd = format_bytes(*kv.node_ssd),
                       .retain = fmt::format("agent={},chat={}", format_duration(*kv.agent),
                                             format_duration(*kv.chat)),
                       .port = free_port(known, name, "port"),
                       .http_port = free_port(known, name, "http_port")});
        if (*kv.tenant_bytes > 0) node.tenant_bytes = format_bytes(*kv.tenant_bytes);
        if (node.folder.empty()) continue;
        std::error_code error;
        fs::create_directories(node.folder, error);
        if (error) return std::unexpected(Error::io("cannot create", error.value(), node.folder));
    }
    return nodes;
}

Result<void> remember_kv_nodes(const StateFolder& folder, const ServiceState& state) {
    if (state.kv_nodes.empty()) return {};
    json::object ports = known_ports(folder);  // Of nodes that this start has not, too.
    for (const KvNodeState& node : state.kv_nodes)
        ports[node.name] = {{"port", port_of(node.url)}, {"http_port", port_of(node.http)}};
    std::error_code error;
    fs::create_directories(kv_folder(folder), error);
    if (error) return std::unexpected(Error::io("cannot create", error.value(), kv_folder(folder)));
    return write_durably(ports_path(folder), json::serialize(ports));
}

}  // namespace sluice::app
