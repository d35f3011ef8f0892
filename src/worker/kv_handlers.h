#pragma once

// POST /kv/pull and POST /kv/release: the side that holds blocks.

#include <memory>

#include "net/http_server.h"
#include "worker/service.h"

namespace sluice::worker {

/// A stream of block values; see port/kv_pull.h.
void handle_kv_pull(Service& service, const std::shared_ptr<net::HttpExchange>& exchange);
[[nodiscard]] net::HttpResponse handle_kv_release(Service& service,
                                                  const net::HttpRequest& request);

}  // namespace sluice::worker
