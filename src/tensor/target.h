#pragma once

// Which vector instructions the kernels use. The bits of every result are the same on all of them
// (docs/exactness.md); the choice is about speed alone. Machines without fused multiply-add are
// refused: there the same source would round differently.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::tensor {

enum class Target : std::uint8_t { kAvx2, kAvx512, kAvx512Vnni, kNeon, kNeonDot };

/// "avx2", "avx512", "avx512vnni", "neon", "neondot": the values of SLUICE_TARGET.
[[nodiscard]] std::string_view to_string(Target target);

/// What this machine and this build can run, the slowest first. Empty on refused machines.
[[nodiscard]] std::vector<Target> available_targets();

/// Makes all kernels use `target`. Not while a kernel runs. `kUnsupported` if it is not available.
[[nodiscard]] Result<void> use_target(Target target);

/// Chooses the fastest target, or the one named by the environment variable SLUICE_TARGET.
/// Call once at start; an error names what the machine lacks.
[[nodiscard]] Result<Target> select_target();

/// The target in use; the fastest one if none was chosen.
[[nodiscard]] Target current_target();

}  // namespace sluice::tensor
