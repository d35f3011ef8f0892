#pragma once

// `system_fingerprint` of an answer: what a client may compare between answers. Equal digests mean
// equal versions all the way down.

#include <string>

#include "port/server_info.h"

namespace sluice::gateway {

[[nodiscard]] std::string version_digest(const port::ServerInfo& info);

}  // namespace sluice::gateway
