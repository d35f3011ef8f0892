#pragma once

// Floats for round trips: every exponent is as likely as any other, not only values near the bounds.

#include <bit>
#include <cstdint>
#include <random>

namespace sluice::test {

/// Uniform over the bit patterns whose value lies in [low, high].
inline float random_float(std::mt19937_64& random, float low, float high) {
    for (;;) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        if (value >= low && value <= high) return value;
    }
}

}  // namespace sluice::test
