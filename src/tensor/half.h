#pragma once

// IEEE 754 half precision, and bfloat16, by hand: the same bits on every machine, rounding to nearest even.

#include <bit>
#include <cstdint>

namespace sluice::tensor {

[[nodiscard]] constexpr float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    const std::uint32_t exponent = (half >> 10) & 0x1FU;
    std::uint32_t mantissa = half & 0x3FFU;
    if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
    if (exponent != 0)
        return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    // Subnormal: mantissa · 2^-24, exact in single precision.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// bfloat16 is the upper half of a float, so widening is exact.
[[nodiscard]] constexpr float bfloat_to_float(std::uint16_t value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

[[nodiscard]] constexpr std::uint16_t float_to_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return sign | 0x7E00U;
    if (magnitude >= 0x47800000U) return sign | 0x7C00U;  // 65536 and beyond
    if (magnitude < 0x38800000U) {
        // Subnormal half: the spacing is 2^-24, and adding 0.5 · 2^23 · 2^-23 rounds to it.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<std::uint16_t>(
            sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
    }
    // Rebias, then round half to even on the 13 dropped bits; a carry into the exponent is right.
    const std::uint32_t rebased = magnitude - (112U << 23);
    return static_cast<std::uint16_t>(sign | ((rebased + 0xFFFU + ((rebased >> 13) & 1U)) >> 13));
}

}  // namespace sluice::tensor
