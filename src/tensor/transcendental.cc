#include "tensor/transcendental.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "base/assert.h"

namespace sluice::tensor {
namespace {

constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 33 bits, so that n times it is exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kLog2E = 1.4426950408889634074;

// π/2 in three parts of 33, 33 and 53 bits.
constexpr double kHalfPi1 = 0x1.921fb54400000p+0;
constexpr double kHalfPi2 = 0x1.0b4611a600000p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0.63661977236758134308;

// To the nearest integer; |x| < 2^31.
double round_to_integer(double x) {
    return static_cast<double>(static_cast<std::int64_t>(x + (x < 0 ? -0.5 : 0.5)));
}

double power_of_two(std::int64_t n) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

// Σ r^i / i! for i = 0..14 by Horner; |r| ≤ ln2/2 leaves 1e-18.
double exp_series(double r) {
    double sum = 1.0;
    for (int i = 14; i >= 1; --i) sum = 1.0 + r * sum / i;
    return sum;
}

// x − x³/3! + ... up to x^17 and 1 − x²/2! + ... up to x^18; |x| ≤ π/4.
double sin_series(double x) {
    const double square = x * x;
    double sum = 1.0;
    for (int i = 16; i >= 2; i -= 2) sum = 1.0 - square * sum / (i * (i + 1));
    return x * sum;
}

double cos_series(double x) {
    const double square = x * x;
    double sum = 1.0;
    for (int i = 17; i >= 1; i -= 2) sum = 1.0 - square * sum / (i * (i + 1));
    return sum;
}

}  // namespace

double exponential(double x) {
    SLUICE_ASSERT(x >= -700.0 && x <= 700.0);
    const double n = round_to_integer(x * kLog2E);
    const double r = (x - n * kLn2High) - n * kLn2Low;
    return exp_series(r) * power_of_two(static_cast<std::int64_t>(n));
}

double natural_log(double x) {
    if (x != x) return x;
    if (x <= 0.0) return -std::numeric_limits<double>::infinity();
    const auto bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        ++exponent;
    }
    // ln m = 2 atanh(s); |s| ≤ 0.1716, and 12 terms leave 1e-19.
    const double s = (m - 1.0) / (m + 1.0);
    const double square = s * s;
    double sum = 0.0;
    for (int i = 25; i >= 1; i -= 2) sum = 1.0 / i + square * sum;
    const auto e = static_cast<double>(exponent);
    return e * kLn2High + (e * kLn2Low + 2.0 * s * sum);
}

SinCos sin_cos(double x) {
    SLUICE_ASSERT(x >= -4194304.0 && x <= 4194304.0);
    const double n = round_to_integer(x * kTwoOverPi);
    const double r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
    const double sine = sin_series(r);
    const double cosine = cos_series(r);
    switch (static_cast<std::int64_t>(n) & 3) {
        case 0: return {.sin = sine, .cos = cosine};
        case 1: return {.sin = cosine, .cos = -sine};
        case 2: return {.sin = -sine, .cos = -cosine};
        default: return {.sin = -cosine, .cos = sine};
    }
}

}  // namespace sluice::tensor
