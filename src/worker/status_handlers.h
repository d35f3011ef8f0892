#pragma once

// GET /health, /ready, /server_info and /metrics: what others may know of this worker.

#include "net/http_message.h"
#include "worker/service.h"

namespace sluice::worker {

/// 200 for as long as the process can answer anything.
[[nodiscard]] net::HttpResponse handle_health(Service& service, const net::HttpRequest& request);
/// A port::LoadReport; 200 if requests are taken, else 503.
[[nodiscard]] net::HttpResponse handle_ready(Service& service, const net::HttpRequest& request);
/// A port::ServerInfo; 503 while the model is loading.
[[nodiscard]] net::HttpResponse handle_server_info(Service& service,
                                                   const net::HttpRequest& request);
[[nodiscard]] net::HttpResponse handle_metrics(Service& service, const net::HttpRequest& request);

}  // namespace sluice::worker
