#pragma once

// Counts what a thread asks of operator new. Linking the .cc replaces the operators of the whole test
// program.

#include <cstddef>

namespace sluice::test {

/// Allocations of the calling thread so far.
[[nodiscard]] std::size_t allocations();

}  // namespace sluice::test
