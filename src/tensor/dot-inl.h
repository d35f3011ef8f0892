// Exact dots of bytes, compiled once per vector target: what q8_0 products are made of.

#if defined(SLUICE_TENSOR_DOT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_TENSOR_DOT_INL_H
#undef SLUICE_TENSOR_DOT_INL_H
#else
#define SLUICE_TENSOR_DOT_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "tensor/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {

using Ints = hn::Rebind<std::int32_t, Floats>;
using IntVec = hn::Vec<Ints>;

// Exact Σ of four products per lane: packed weights times signed activations. A dot that is kSigned
// takes the +128 off the weights, so its sums need no correction.

#if !HWY_ARCH_ARM_A64
// Without an instruction for it. Bytes are widened to 16 bits, so that no intermediate can saturate.
struct WideDot {
    static constexpr bool kSigned = false;
    HWY_INLINE IntVec operator()(IntVec acc, IntVec weights, std::int32_t activations) const {
        const Ints d;
        const hn::Repartition<std::int16_t, Ints> d16;
        const auto w = hn::BitCast(d16, weights);
        const auto a = hn::BitCast(d16, hn::Set(d, activations));
        const auto w_even = hn::And(w, hn::Set(d16, 0x00FF));
        const hn::Repartition<std::uint16_t, Ints> du16;
        const auto w_odd = hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(du16, w)));
        const auto a_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(a));
        const auto a_odd = hn::ShiftRight<8>(a);
        IntVec unused = hn::Zero(d);
        acc = hn::ReorderWidenMulAccumulate(d, w_even, a_even, acc, unused);
        return hn::ReorderWidenMulAccumulate(d, w_odd, a_odd, acc, unused);
    }
};
#else
// |weight| ≤ 128 and |activation| ≤ 127, so two products fit into 16 bits.
struct WideDot {
    static constexpr bool kSigned = true;
    HWY_INLINE IntVec operator()(IntVec acc, IntVec weights, std::int32_t activations) const {
        const int8x16_t w = veorq_s8(vreinterpretq_s8_s32(weights.raw), vdupq_n_s8(-128));
        const int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(activations));
        const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(a));
        return IntVec(vpadalq_s16(acc.raw, vpaddq_s16(low, vmull_high_s8(w, a))));
    }
};

// The same in one instruction, as assembly for the reason of VnniDot; callers check the processor.
struct SdotDot {
    static constexpr bool kSigned = true;
    HWY_INLINE IntVec operator()(IntVec acc, IntVec weights, std::int32_t activations) const {
        const int8x16_t w = veorq_s8(vreinterpretq_s8_s32(weights.raw), vdupq_n_s8(-128));
        const int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(activations));
        asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
            : "+w"(acc.raw)
            : "w"(w), "w"(a));
        return acc;
    }
};
#endif

#if HWY_TARGET == HWY_AVX3
// The same in one instruction. Written as assembly because Highway 1.0.3 has neither a four-way
// integer dot nor a target that allows this intrinsic; callers check the processor.
struct VnniDot {
    static constexpr bool kSigned = false;
    HWY_INLINE IntVec operator()(IntVec acc, IntVec weights, std::int32_t activations) const {
        const __m512i broadcast = _mm512_set1_epi32(activations);
        asm("vpdpbusd %2, %1, %0" : "+v"(acc.raw) : "v"(weights.raw), "v"(broadcast));
        return acc;
    }
};
#endif

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
