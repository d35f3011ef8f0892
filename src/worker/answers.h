#pragma once

// Answers in one piece, in the port's shape.

#include <string>
#include <string_view>

#include "net/http_message.h"
#include "port/port_error.h"

namespace sluice::worker {

/// `{"error":{...}}`; a 503 carries Retry-After.
[[nodiscard]] net::HttpResponse error_answer(int status, const port::PortError& error);
[[nodiscard]] net::HttpResponse error_answer(int status, std::string_view code, std::string message,
                                             std::string param = {});

/// For what the HTTP server refuses before a handler sees it.
[[nodiscard]] net::HttpResponse http_error_answer(int status, std::string_view message);

}  // namespace sluice::worker
