// exp, log and the 16-lane sum, compiled once per vector target. Each is a fixed sequence of IEEE
// operations per element, so every target and the scalar reference (reference.cc) agree on bits.

#if defined(SLUICE_TENSOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_TENSOR_MATH_INL_H
#undef SLUICE_TENSOR_MATH_INL_H
#else
#define SLUICE_TENSOR_MATH_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "tensor/math_constants.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatVec = hn::Vec<Floats>;
inline constexpr std::size_t kLanes = HWY_LANES(float);
/// Vectors that make up the 16 logical lanes of a reduction.
inline constexpr std::size_t kGroup = kReductionLanes / kLanes;

/// e^x; 0 below −87, e^88 above 88, NaN for NaN.
HWY_INLINE FloatVec exp_vec(FloatVec x) {
    const Floats d;
    const hn::Rebind<std::int32_t, Floats> di;
    const FloatVec low = hn::Set(d, kExpLow);
    const FloatVec clamped = hn::Min(hn::Max(x, low), hn::Set(d, kExpHigh));
    const FloatVec n = hn::Round(hn::Mul(clamped, hn::Set(d, kLog2E)));
    FloatVec r = hn::MulAdd(n, hn::Set(d, -kLn2High), clamped);
    r = hn::MulAdd(n, hn::Set(d, -kLn2Low), r);
    FloatVec p = hn::Set(d, kExpPoly[0]);
#pragma GCC unroll 8
    for (std::size_t i = 1; i < kExpPoly.size(); ++i) p = hn::MulAdd(p, r, hn::Set(d, kExpPoly[i]));
    const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
    const FloatVec y = hn::Mul(p, hn::BitCast(d, exponent));
    const FloatVec floored = hn::IfThenElse(hn::Lt(x, low), hn::Zero(d), y);
    return hn::IfThenElse(hn::IsNaN(x), x, floored);
}

/// ln x for positive normal x.
HWY_INLINE FloatVec log_vec(FloatVec x) {
    const Floats d;
    const hn::Rebind<std::int32_t, Floats> di;
    // x = m · 2^e with m in [√½, √2).
    const auto bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, kSqrtHalfBits));
    const auto e = hn::ShiftRight<23>(bits);
    const auto m_bits = hn::Add(hn::And(bits, hn::Set(di, 0x007FFFFF)), hn::Set(di, kSqrtHalfBits));
    const FloatVec m = hn::BitCast(d, m_bits);
    const FloatVec one = hn::Set(d, 1.0F);
    const FloatVec s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
    const FloatVec s2 = hn::Mul(s, s);
    FloatVec p = hn::Set(d, kAtanhPoly[0]);
#pragma GCC unroll 8
    for (std::size_t i = 1; i < kAtanhPoly.size(); ++i)
        p = hn::MulAdd(p, s2, hn::Set(d, kAtanhPoly[i]));
    const FloatVec ef = hn::ConvertTo(d, e);
    const FloatVec ln_m = hn::Mul(hn::Add(s, s), p);
    return hn::MulAdd(ef, hn::Set(d, kLn2High), hn::MulAdd(ef, hn::Set(d, kLn2Low), ln_m));
}

HWY_INLINE float exp_one(float x) { return hn::GetLane(exp_vec(hn::Set(Floats(), x))); }

using Four = hn::CappedTag<float, 4>;
using FourVec = hn::Vec<Four>;

/// The first two levels of the tree, +8 and +4: four partial sums.
HWY_INLINE FourVec sum_to_four(const FloatVec (&lanes)[kGroup]) {
#if HWY_CAP_GE512
    const hn::Half<Floats> half;
    const auto eight = hn::Add(hn::LowerHalf(half, lanes[0]), hn::UpperHalf(half, lanes[0]));
    return hn::Add(hn::LowerHalf(Four(), eight), hn::UpperHalf(Four(), eight));
#elif HWY_CAP_GE256
    const FloatVec eight = hn::Add(lanes[0], lanes[1]);
    return hn::Add(hn::LowerHalf(Four(), eight), hn::UpperHalf(Four(), eight));
#else
    return hn::Add(hn::Add(lanes[0], lanes[2]), hn::Add(lanes[1], lanes[3]));
#endif
}

/// The last two levels, +2 and +1, for four sums at once: the sum of each argument, in order.
HWY_INLINE FourVec sum_of_fours(FourVec a, FourVec b, FourVec c, FourVec e) {
    const Four d;
    const FourVec ab = hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
    const FourVec ce = hn::Add(hn::ConcatLowerLower(d, e, c), hn::ConcatUpperUpper(d, e, c));
    return hn::Add(hn::ConcatEven(d, ce, ab), hn::ConcatOdd(d, ce, ab));
}

/// The tree +8, +4, +2, +1 over 16 logical lanes.
HWY_INLINE float tree_sum(const FloatVec (&lanes)[kGroup]) {
    const FourVec four = sum_to_four(lanes);
    return hn::GetLane(sum_of_fours(four, four, four, four));
}

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
