#include "kvnode/resp_server.h"

#include <utility>

#include "kvnode/resp_session.h"

namespace sluice::kvnode {

Result<std::unique_ptr<net::TcpServer>> listen_resp(NodeService& service,
                                                    net::TcpServerOptions options,
                                                    const RespLimits& bounds) {
    options.connections = bounds.connections;
    options.refusal = "-ERR max number of clients reached\r\n";
    options.write_stall = bounds.write_stall;
    return net::TcpServer::listen(
        service.loop, std::move(options), [&service](net::TcpStream& stream, std::string peer) {
            return std::make_unique<RespSession>(service, stream, std::move(peer));
        });
}

}  // namespace sluice::kvnode
