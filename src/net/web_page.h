#pragma once

// Requests that a page in somebody's browser sends. Who listens on loopback without a password trusts
// whoever is on the machine, and a browser there brings in pages from anywhere: they can't read the
// answer to such a request, but what it orders would be done.

#include <string_view>

#include "net/http_message.h"

namespace sluice::net {

/// Browsers say by these fields that a page asks, in every request that is more than a GET, and a page
/// can't keep them from it.
[[nodiscard]] inline bool is_from_web_page(const HttpRequest& request) {
    return request.headers.find("Origin").has_value() ||
           request.headers.find("Sec-Fetch-Site").value_or("none") != "none";
}

inline constexpr std::string_view kNoWebPages = "web pages may not order anything here";

}  // namespace sluice::net
