#pragma once

// POST /abort_request: frees everything a request holds before the engine's next step. Aborting a
// request that has ended, or was never there, is no error: the two sides race by nature.

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::port {

struct AbortRequest {
    std::string rid;  ///< kRidLength lower-case hexadecimal digits.
    bool operator==(const AbortRequest&) const = default;
};

[[nodiscard]] std::string to_json(const AbortRequest& request);
[[nodiscard]] Result<AbortRequest> parse_abort_request(std::string_view json);

}  // namespace sluice::port
