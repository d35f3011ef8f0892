#pragma once

// The query of a URL: "since=1h&pool=stable".

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::net {

/// Fields by name, percent-decoded; '+' is a space. Of a name that occurs twice the last value counts.
/// Error `kInvalid` for a malformed escape.
[[nodiscard]] Result<std::map<std::string, std::string, std::less<>>> parse_query(
    std::string_view query);

/// Everything but letters, digits and "-._~" becomes "%XX".
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace sluice::net
