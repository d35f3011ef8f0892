#pragma once

// What an operator asks of the blocks that a worker keeps outside of its pool: GET /kv/status, POST
// /kv/drop, /kv/pin, /kv/verify, /kv/bounds, and POST /kv/nodes, which says what cache nodes there are.

#include <memory>

#include "net/http_server.h"
#include "worker/service.h"

namespace sluice::worker {

[[nodiscard]] net::HttpResponse handle_kv_status(Service& service, const net::HttpRequest& request);

[[nodiscard]] net::HttpResponse handle_kv_pin(Service& service, const net::HttpRequest& request);
[[nodiscard]] net::HttpResponse handle_kv_bounds(Service& service, const net::HttpRequest& request);
[[nodiscard]] net::HttpResponse handle_kv_nodes(Service& service, const net::HttpRequest& request);

/// Answers once pools have forgotten what fits as well, but for what running requests hold. To a pool a
/// block's class is that of the request that computed it, or had it fetched.
void handle_kv_drop(Service& service, const std::shared_ptr<net::HttpExchange>& exchange);

/// Answers once everything in memory was read; what is damaged is dropped.
void handle_kv_verify(Service& service, const std::shared_ptr<net::HttpExchange>& exchange);

}  // namespace sluice::worker
