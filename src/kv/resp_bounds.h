#pragma once

// How much one request or reply may be, whatever its sender says.

#include <cstddef>

namespace sluice::kv {

struct RespBounds {
    std::size_t elements = 1024 * 1024;  ///< Arguments of a request; all parts of a reply.
    std::size_t text_bytes = 512UL * 1024 * 1024;  ///< One string; what Redis allows, too.
    /// All strings together, with what it takes to hold them.
    std::size_t total_bytes = 1024UL * 1024 * 1024;
    std::size_t line_bytes = 64 * 1024;  ///< Inline commands, simple strings, errors, numbers.
    std::size_t depth = 16;              ///< Arrays within arrays.
};

}  // namespace sluice::kv
