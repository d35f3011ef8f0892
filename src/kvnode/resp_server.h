#pragma once

// Serves RESP for a node.

#include <chrono>
#include <cstddef>
#include <memory>

#include "base/limits.h"
#include "kvnode/node_service.h"
#include "net/tcp_server.h"

namespace sluice::kvnode {

/// What clients may cost.
struct RespLimits {
    std::size_t connections = limits::kKvNodeClients;
    /// Who takes nothing of an answer for so long is cut.
    std::chrono::milliseconds write_stall = std::chrono::seconds(limits::kKvNodeStallSeconds);
};

/// Address, port and TLS as `options` say.
[[nodiscard]] Result<std::unique_ptr<net::TcpServer>> listen_resp(NodeService& service,
                                                                  net::TcpServerOptions options,
                                                                  const RespLimits& bounds = {});

}  // namespace sluice::kvnode
