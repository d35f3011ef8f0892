#pragma once

// The HTTP side of a cache node: /health, /metrics, /kv_events, /kv/status, and orders. With a password,
// orders need it as `Authorization: Bearer PASSWORD`. Orders of web pages are refused.

#include <memory>

#include "kvnode/kv_event_feed.h"
#include "kvnode/node_metrics.h"
#include "kvnode/node_service.h"
#include "net/http_server.h"

namespace sluice::kvnode {

class NodeHttp {
public:
    /// `service` outlives it.
    [[nodiscard]] static Result<std::unique_ptr<NodeHttp>> listen(NodeService& service,
                                                                  net::HttpServerOptions options);

    [[nodiscard]] std::uint16_t port() const { return server_->port(); }
    void stop_accepting();

private:
    explicit NodeHttp(NodeService& service);
    void route(const std::shared_ptr<net::HttpExchange>& exchange);
    void answer_events(const std::shared_ptr<net::HttpExchange>& exchange);
    [[nodiscard]] bool may_order(const net::HttpRequest& request) const;

    NodeService& service_;
    NodeMetrics metrics_;
    KvEventFeed feed_;
    std::unique_ptr<net::HttpServer> server_;
};

}  // namespace sluice::kvnode
