#include "tests/support/half.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::test {
namespace {

constexpr int kFractionBits = 10;
constexpr int kBias = 15;

}  // namespace

float half_to_float(std::uint16_t half) {
    const int exponent = (half >> kFractionBits) & 31;
    const int fraction = half & 1023;
    const float sign = (half & 0x8000) != 0 ? -1.0F : 1.0F;
    if (exponent == 31) {
        return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                             : std::numeric_limits<float>::quiet_NaN();
    }
    if (exponent == 0)
        return sign * std::ldexp(static_cast<float>(fraction), 1 - kBias - kFractionBits);
    return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - kBias - kFractionBits);
}

std::uint16_t float_to_half(float value) {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | 0x7E00;
    if (value == 0.0F) return sign;
    if (std::isinf(value)) return sign | 0x7C00;

    int exponent = 0;
    std::frexp(std::fabs(value), &exponent);
    // The last place of a half of this size; subnormals share the smallest.
    const int last_place = std::max(exponent - 1, 1 - kBias) - kFractionBits;
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(value), -last_place)));
    // Adding the exponent lets a fraction that rounded up to 2048 carry into it.
    const int biased = last_place + kFractionBits + kBias;
    const int bits = units < 1024 ? units : ((biased - 1) << kFractionBits) + units;
    return bits >= 0x7C00 ? sign | 0x7C00 : static_cast<std::uint16_t>(sign | bits);
}

}  // namespace sluice::test
