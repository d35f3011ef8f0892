#pragma once

// IEEE half precision for test data: written for being obviously right, not for speed.

#include <cstdint>

namespace sluice::test {

/// Exact.
[[nodiscard]] float half_to_float(std::uint16_t half);

/// To nearest, ties to even; too large becomes infinite.
[[nodiscard]] std::uint16_t float_to_half(float value);

}  // namespace sluice::test
