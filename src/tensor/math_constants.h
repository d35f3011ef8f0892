#pragma once

// Constants shared by the vector kernels and their scalar references. Changing one changes bits:
// raise kArithmeticVersion with it.

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::tensor {

/// Version of every rule in docs/exactness.md as implemented here; part of the numerics id.
inline constexpr int kArithmeticVersion = 2;

/// Logical lanes of every horizontal sum: element i belongs to lane i mod 16.
inline constexpr std::size_t kReductionLanes = 16;

inline constexpr float kExpLow = -87.0F;
inline constexpr float kExpHigh = 88.0F;
inline constexpr float kLog2E = 1.44269504088896341F;
// ln 2 in two parts; the high one has trailing zeros, so n times it is exact for |n| < 2^13.
inline constexpr float kLn2High = 0.693359375F;
inline constexpr float kLn2Low = -2.12194440054690583e-4F;

// Taylor coefficients 1/7! ... 1/0! on |r| <= ln2/2: the next term, r^8/8!, is below 2^-27.
inline constexpr std::array<float, 8> kExpPoly = {
    1.0F / 5040.0F, 1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F};

inline constexpr std::int32_t kSqrtHalfBits = 0x3F3504F3;  // √½
// ln m = 2 atanh(s) with s = (m-1)/(m+1): coefficients 1/9, 1/7, 1/5, 1/3, 1 of s², where |s| < 0.172,
// so that the next term, s^10/11, is below 2^-28.
inline constexpr std::array<float, 5> kAtanhPoly = {1.0F / 9.0F, 1.0F / 7.0F, 1.0F / 5.0F,
                                                    1.0F / 3.0F, 1.0F};

}  // namespace sluice::tensor
