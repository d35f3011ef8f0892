#pragma once

// What a running service says of itself: the ready line, and the file `up.json` that tells the same
// to whoever comes later.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::app {

struct WorkerState {
    std::string name;
    std::string url;
    pid_t pid = 0;
    std::string phase = "full";  ///< What it is for.
    bool operator==(const WorkerState&) const = default;
};

/// A cache server that the service started.
struct KvNodeState {
    std::string name;
    std::string url;   ///< "redis://127.0.0.1:7301"
    std::string http;  ///< Of its events and its state.
    pid_t pid = 0;
    bool operator==(const KvNodeState&) const = default;
};

struct ServiceState {
    std::string url;
    std::string admin;
    pid_t pid = 0;  ///< Of the supervisor.
    pid_t gateway_pid = 0;
    std::vector<WorkerState> workers;
    std::vector<KvNodeState> kv_nodes{};
    bool operator==(const ServiceState&) const = default;
};

/// One line of JSON without its newline; `event` is "ready", or "restarted" with new pids.
[[nodiscard]] std::string to_json(const ServiceState& state, std::string_view event = "ready");

/// "ready on http://127.0.0.1:8080 (admin http://127.0.0.1:8081)"
[[nodiscard]] std::string ready_line(const ServiceState& state);

/// Error `kCorrupt` if it is not what `to_json` writes.
[[nodiscard]] Result<ServiceState> parse_service_state(std::string_view json);

}  // namespace sluice::app
