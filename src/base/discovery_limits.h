#pragma once

// Bounds of what workers and registries say of themselves: part of the table of base/limits.h, as
// `sluice limits` prints it.

#include <cstddef>

namespace sluice::limits {

inline constexpr std::size_t kWorkerUrlBytes = 512;
inline constexpr std::size_t kEtcdEndpoints = 16;
inline constexpr std::size_t kEtcdPrefixBytes = 256;

}  // namespace sluice::limits
