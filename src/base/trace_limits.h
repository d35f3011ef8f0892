#pragma once

// The bound of traces: part of the table of base/limits.h, as `sluice limits` prints it.

#include <cstddef>

namespace sluice::limits {

inline constexpr std::size_t kTracesWaiting = 4'096;

}  // namespace sluice::limits
