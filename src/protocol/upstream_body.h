#pragma once

// The body of a request as it goes to a pass-through pool: the client's own, byte for byte, but for
// the model's name and the wish for usage where the pool needs them.

#include <string>
#include <string_view>

#include "protocol/request_outline.h"

namespace sluice::protocol {

struct UpstreamBodyEdits {
    std::string_view model;      ///< Replaces the model's name; empty leaves it.
    bool include_usage = false;  ///< Asks for a usage chunk, if the client did not.
};

/// `outline` is `body`'s.
[[nodiscard]] std::string upstream_body(std::string_view body, const RequestOutline& outline,
                                        const UpstreamBodyEdits& edits);

}  // namespace sluice::protocol
