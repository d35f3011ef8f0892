#pragma once

// POST /generate

#include <memory>

#include "net/http_server.h"
#include "worker/service.h"

namespace sluice::worker {

void handle_generate(Service& service, const std::shared_ptr<net::HttpExchange>& exchange);

}  // namespace sluice::worker
