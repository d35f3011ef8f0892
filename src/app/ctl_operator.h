#pragma once

#include <string>

#include "net/http_message.h"

namespace sluice::app {

/// Who asks for a change, and why, for the gateway's audit log.
[[nodiscard]] net::HttpHeaders operator_headers(const std::string& why);

}  // namespace sluice::app
