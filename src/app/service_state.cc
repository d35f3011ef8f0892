#include "app/service_state.h"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <exception>

namespace sluice::app {

namespace json = boost::json;

std::string to_json(const ServiceState& state, std::string_view event) {
    json::array workers;
    for (const WorkerState& worker : state.workers) {
        workers.push_back({{"name", worker.name},
                           {"url", worker.url},
                           {"pid", worker.pid},
                           {"phase", worker.phase}});
    }
    json::array nodes;
    for (const KvNodeState& node : state.kv_nodes) {
        nodes.push_back(
            {{"name", node.name}, {"url", node.url}, {"http", node.http}, {"pid", node.pid}});
    }
    return json::serialize(json::object{{"event", event},
                                        {"url", state.url},
                                        {"admin", state.admin},
                                        {"pid", state.pid},
                                        {"gateway", {{"pid", state.gateway_pid}}},
                                        {"workers", std::move(workers)},
                                        {"kv_nodes", std::move(nodes)}});
}

std::string ready_line(const ServiceState& state) {
    return fmt::format("ready on {} (admin {})", state.url, state.admin);
}

namespace {

std::string text(const json::object& object, std::string_view key) {
    return json::value_to<std::string>(object.at(key));
}

ServiceState from_json(const json::object& object) {
    ServiceState state{.url = text(object, "url"),
                       .admin = text(object, "admin"),
                       .pid = json::value_to<pid_t>(object.at("pid")),
                       .gateway_pid = json::value_to<pid_t>(object.at("gateway").at("pid"))};
    for (const json::value& value : object.at("workers").as_array()) {
        const json::object& worker = value.as_object();
        state.workers.push_back({.name = text(worker, "name"),
                                 .url = text(worker, "url"),
                                 .pid = json::value_to<pid_t>(worker.at("pid")),
                                 .phase = text(worker, "phase")});
    }
    for (const json::value& value : object.at("kv_nodes").as_array()) {
        const json::object& node = value.as_object();
        state.kv_nodes.push_back({.name = text(node, "name"),
                                  .url = text(node, "url"),
                                  .http = text(node, "http"),
                                  .pid = json::value_to<pid_t>(node.at("pid"))});
    }
    return state;
}

}  // namespace

Result<ServiceState> parse_service_state(std::string_view json_text) {
    try {
        return from_json(json::parse(json_text).as_object());
    } catch (const std::exception&) {
        return std::unexpected(Error::corrupt("is not the state of a service"));
    }
}

}  // namespace sluice::app
