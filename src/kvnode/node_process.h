#pragma once

// A cache node as a process: what `sluice kvnode` does.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kvnode/node_store.h"

namespace sluice::kvnode {

struct NodeOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;       ///< 0 takes a free one.
    std::uint16_t http_port = 0;  ///< Likewise.
    NodeStore::Options store;
    std::string password;  ///< Empty: none, which only an address of this machine may go without.
    std::string tls_cert;  ///< With both it speaks TLS, and nothing else.
    std::string tls_key;
    FaultPoints faults{};
    std::function<void(std::uint16_t port, std::uint16_t http_port)> on_ready;
};

/// Serves until SIGINT or SIGTERM, which is returned once everything is on the SSD for good. Errors: what
/// keeps it from starting.
[[nodiscard]] Result<int> run_node(NodeOptions options);

}  // namespace sluice::kvnode
