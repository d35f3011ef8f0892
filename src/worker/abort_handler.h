#pragma once

// POST /abort_request: answered at once; by then the abort is ahead of the engine's next step.

#include "net/http_message.h"
#include "worker/service.h"

namespace sluice::worker {

[[nodiscard]] net::HttpResponse handle_abort(Service& service, const net::HttpRequest& request);

}  // namespace sluice::worker
