#pragma once

// One HTTP call of a command, waited for.

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::app {

struct HttpAnswer {
    int status = 0;
    std::string body;  ///< What no sink took.
};

/// Gets the pieces of a body as they come.
using BodySink = std::function<void(std::string_view)>;

/// The loop is the calling thread's own, and runs meanwhile. The body of a 2xx answer goes to `sink` if
/// there is one; a collected one is bounded (`admin.answer`). Errors are the connection's.
[[nodiscard]] Result<HttpAnswer> fetch(net::EventLoop& loop, net::HttpClient& client,
                                       net::ClientRequest request, const BodySink& sink = {});

}  // namespace sluice::app
