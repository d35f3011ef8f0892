#pragma once

// Serves RESP for a node.

#include <memory>

#include "kvnode/node_service.h"
#include "net/tcp_server.h"

namespace sluice::kvnode {

/// Address, port and TLS as `options` say; what a client may cost is set here.
[[nodiscard]] Result<std::unique_ptr<net::TcpServer>> listen_resp(NodeService& service,
                                                                  net::TcpServerOptions options);

}  // namespace sluice::kvnode
