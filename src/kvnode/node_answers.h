#pragma once

// Answers of a node's HTTP side in one piece, in the port's shape.

#include <string>
#include <string_view>

#include "net/http_message.h"

namespace sluice::kvnode {

/// `{"error":{"message","code","param"}}`; a 503 carries Retry-After. `code` as in port/port_error.h.
[[nodiscard]] net::HttpResponse error_answer(int status, std::string_view code, std::string message,
                                             std::string param = {});
/// For what the HTTP server refuses before a handler sees it.
[[nodiscard]] net::HttpResponse http_error_answer(int status, std::string_view message);

}  // namespace sluice::kvnode
