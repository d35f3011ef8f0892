#pragma once

// Which header fields cross the gateway, on the way to a pass-through pool and back. What belongs to
// one connection stays there; what identifies or authorises a client never leaves the gateway.

#include <string>

#include "net/http_message.h"

namespace sluice::gateway {

/// The client's fields but those of its connection, its credentials and Sluice's own; with the pool's
/// own `api_key`, if there is one, and `request_id`.
[[nodiscard]] net::HttpHeaders request_headers_for(const net::HttpHeaders& client,
                                                   const std::string& api_key,
                                                   const std::string& request_id);

/// The upstream's fields but those of its connection and its cookies; with the gateway's own.
[[nodiscard]] net::HttpHeaders answer_headers_from(const net::HttpHeaders& upstream,
                                                   const std::string& pool,
                                                   const std::string& request_id);

}  // namespace sluice::gateway
