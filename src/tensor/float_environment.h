#pragma once

// The floating-point environment in which results are exact: rounding to nearest even, subnormals
// kept. It belongs to each thread, and a library that was built for speed can change it when it is
// loaded, so computing threads set it again before each step.

namespace sluice::tensor {

/// Makes the calling thread's environment the exact one.
void use_exact_float_environment();

/// Whether it is, found out by computing: rounding, and subnormals as input and as result.
[[nodiscard]] bool float_environment_is_exact();

}  // namespace sluice::tensor
