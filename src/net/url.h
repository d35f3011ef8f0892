#pragma once

// The addresses this client can call: http[s]://host[:port][/path][?query].

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::net {

struct Url {
    std::string host{};   ///< Without brackets: "::1".
    bool secure = false;  ///< https.
    std::uint16_t port = 80;
    std::string authority{};  ///< As a Host field has it: "[::1]:8080".
    std::string target{};     ///< Path and query, never empty: "/v1/models?limit=2".
};

/// Error `kInvalid` for anything malformed (also spaces, control characters, user names),
/// `kUnsupported` for schemes other than http and https.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

}  // namespace sluice::net
