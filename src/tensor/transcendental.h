#pragma once

// exp, ln, sin and cos in double precision, built from IEEE additions, multiplications and divisions
// only: the C library's differ between versions and machines, these do not. For tables and single
// values; relative errors stay below 1e-14 in the stated ranges.

namespace sluice::tensor {

/// e^x for |x| ≤ 700.
[[nodiscard]] double exponential(double x);

/// ln x for positive normal x; −∞ for 0.
[[nodiscard]] double natural_log(double x);

struct SinCos {
    double sin = 0.0;
    double cos = 1.0;
};

/// For |x| ≤ 2^22, absolute error below 1e-12.
[[nodiscard]] SinCos sin_cos(double x);

}  // namespace sluice::tensor
