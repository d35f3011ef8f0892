#pragma once

// GET /kv_events; see port/kv_events.h.

#include <memory>

#include "net/http_server.h"
#include "worker/service.h"

namespace sluice::worker {

void handle_kv_events(Service& service, const std::shared_ptr<net::HttpExchange>& exchange);

}  // namespace sluice::worker
