#pragma once

// /kv/status, and the orders of an operator: POST /kv/bounds, /kv/drop, /kv/pin and /kv/verify (port/kv_orders.h).

#include <memory>

#include "kvnode/node_service.h"
#include "net/http_server.h"

namespace sluice::kvnode {

using Exchange = std::shared_ptr<net::HttpExchange>;

void answer_kv_status(NodeService& service, const Exchange& exchange);
void answer_kv_drop(NodeService& service, const Exchange& exchange);
void answer_kv_bounds(NodeService& service, const Exchange& exchange);
void answer_kv_pin(NodeService& service, const Exchange& exchange);
void answer_kv_verify(NodeService& service, const Exchange& exchange);

}  // namespace sluice::kvnode
