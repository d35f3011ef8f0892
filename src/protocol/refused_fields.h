#pragma once

// Fields we know and can't honour yet.
//
// Dropping one silently would give an answer to a question that was not asked, so a request that
// uses one is refused by name. A value that asks for nothing (false, an empty list, what happens
// anyway) passes. Fields that can't change the answer, and names we don't know, are ignored:
// clients add both all the time.

#include <boost/json.hpp>
#include <cstdint>
#include <optional>

#include "base/error.h"

namespace sluice::protocol {

enum class Endpoint : std::uint8_t { kChat, kCompletions };

/// Error `kUnsupported` for the first field of the table that `body` uses.
[[nodiscard]] std::optional<Error> find_refused_field(const boost::json::object& body,
                                                      Endpoint endpoint);

}  // namespace sluice::protocol
