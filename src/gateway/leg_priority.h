#pragma once

// What an engine admits first when it has not got room for all: answers, by their tenant's priority,
// then copies, then the measuring of what is over.

#include <cstdint>

#include "base/limits.h"

namespace sluice::gateway {

inline constexpr std::int32_t kCopyPriority = -limits::kPriorityMax - 1;
inline constexpr std::int32_t kScorePriority = kCopyPriority - 1;

}  // namespace sluice::gateway
