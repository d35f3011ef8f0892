#include "kvnode/resp_server.h"

#include <utility>

#include "base/limits.h"
#include "kvnode/resp_session.h"

namespace sluice::kvnode {

Result<std::unique_ptr<net::TcpServer>> listen_resp(NodeService& service,
                                                    net::TcpServerOptions options) {
    options.connections = limits::kKvNodeClients;
    options.refusal = "-ERR max number of clients reached\r\n";
    options.write_stall = std::chrono::seconds(limits::kKvNodeStallSeconds);
    return net::TcpServer::listen(
        service.loop, std::move(options), [&service](net::TcpStream& stream, std::string peer) {
            return std::make_unique<RespSession>(service, stream, std::move(peer));
        });
}

}  // namespace sluice::kvnode
