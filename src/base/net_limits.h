#pragma once

// Bounds within net/: part of the table of base/limits.h, as `sluice limits` prints it.

#include <cstddef>
#include <cstdint>

namespace sluice::limits {

/// Connections whose output waits for the end of a pass over what is ready.
inline constexpr std::size_t kPassConnections = 16;
/// How long the end of an upstream's answer may take that nobody waits for.
inline constexpr std::int64_t kUnheardMilliseconds = 1'000;
/// Room for so many times what has come of a body is no memory yet, only addresses.
inline constexpr std::size_t kBodyReservedAhead = 64;

}  // namespace sluice::limits
