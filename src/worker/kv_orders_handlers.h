#pragma once

// What an operator asks of the blocks that a worker keeps outside of its pool: GET /kv/status, POST
// /kv/drop, /kv/pin, /kv/verify, /kv/bounds, and POST /kv/nodes, which says what cache nodes there are.

#include <memory>

#include "net/http_server.h"
#include "worker/service.h"

namespace sluice::worker {

[[nodiscard]] net::HttpResponse handle_kv_status(Service& service, const net::HttpRequest& request);

/// Of a tenant's or a class's blocks, what the pool keeps for nobody goes, too, whosever it is: the pool
/// knows no names.
[[nodiscard]] net::HttpResponse handle_kv_drop(Service& service, const net::HttpRequest& request);
[[nodiscard]] net::HttpResponse handle_kv_pin(Service& service, const net::HttpRequest& request);
[[nodiscard]] net::HttpResponse handle_kv_bounds(Service& service, const net::HttpRequest& request);
[[nodiscard]] net::HttpResponse handle_kv_nodes(Service& service, const net::HttpRequest& request);

/// Answers once everything in memory was read; what is damaged is dropped.
void handle_kv_verify(Service& service, const std::shared_ptr<net::HttpExchange>& exchange);

}  // namespace sluice::worker
