#pragma once

// How much one request or reply may be, whatever its sender says: at most what base/limits.h allows. A
// node's sessions and the clients of stores are stricter (resp_session.cc, resp_client.cc in kvnode/).

#include <cstddef>

#include "base/limits.h"

namespace sluice::kv {

struct RespBounds {
    std::size_t elements = limits::kRespItems;  ///< Arguments of a request; all parts of a reply.
    std::size_t text_bytes = limits::kKvValueBytes;  ///< One string; what Redis allows, too.
    /// All strings together, with what it takes to hold them.
    std::size_t total_bytes = 2 * limits::kKvValueBytes;
    /// Inline commands, simple strings, errors, numbers.
    std::size_t line_bytes = limits::kRespInlineBytes;
    std::size_t depth = limits::kRespDepth;  ///< Arrays within arrays.
};

}  // namespace sluice::kv
