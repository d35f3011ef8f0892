#pragma once

// The body of a request as it goes to a pass-through pool: the client's own, byte for byte, but for
// the model's name, the wish for usage and the salt of the prefix cache, where the pool needs them.

#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_outline.h"

namespace sluice::protocol {

struct UpstreamBodyEdits {
    std::string_view model;      ///< Replaces the model's name; empty leaves it.
    bool include_usage = false;  ///< Asks for a usage chunk, if the client did not.
    /// Requests with another salt share no cached prefix; empty leaves the client's own. Where both
    /// are there, what goes out depends on both, so that nobody can take another tenant's.
    std::string_view cache_salt;
};

/// A piece of it.
struct UpstreamBodyPart {
    std::string_view kept;  ///< Of the client's body, where it stands; else empty.
    std::string put_in;
};

/// What goes there, in order. `outline` is `body`'s.
[[nodiscard]] std::vector<UpstreamBodyPart> upstream_body(std::string_view body,
                                                          const RequestOutline& outline,
                                                          const UpstreamBodyEdits& edits);

}  // namespace sluice::protocol
