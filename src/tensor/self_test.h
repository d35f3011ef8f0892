#pragma once

// A few milliseconds of known arithmetic at every start: each kind of kernel on fixed inputs, hashed.
// A processor, compiler or library on which the bits differ is found here, before it serves a token
// that another machine would not have served.

#include <string>

#include "base/error.h"

namespace sluice::tensor {

/// Hexadecimal SHA-256 over the results of every kernel on the target in use.
[[nodiscard]] std::string self_test_digest();

/// `kInternal` if the digest is not the one committed with kArithmeticVersion, or the thread's
/// floating-point environment is not exact.
[[nodiscard]] Result<void> self_test();

}  // namespace sluice::tensor
