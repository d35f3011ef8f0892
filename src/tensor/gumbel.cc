#include "tensor/gumbel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/gumbel.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "tensor/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {

using Words = hn::Rebind<std::uint32_t, Floats>;
using WordVec = hn::Vec<Words>;

struct Counter {
    WordVec word[4];
};

// The high 32 bits of a·b per lane.
HWY_INLINE WordVec multiply_high(WordVec a, WordVec b) {
    const Words d;
    const hn::Repartition<std::uint64_t, Words> wide;
    const auto even = hn::ShiftRight<32>(hn::MulEven(a, b));
    const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))),
                                 hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, b))));
    const auto mask = hn::Set(wide, 0xFFFFFFFF00000000ULL);
    return hn::BitCast(d, hn::Or(even, hn::And(odd, mask)));
}

HWY_INLINE Counter philox(Counter c, std::uint64_t seed) {
    const Words d;
    const WordVec m0 = hn::Set(d, 0xD2511F53U);
    const WordVec m1 = hn::Set(d, 0xCD9E8D57U);
    auto k0 = static_cast<std::uint32_t>(seed);
    auto k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const WordVec high0 = multiply_high(m0, c.word[0]);
        const WordVec low0 = hn::Mul(m0, c.word[0]);
        const WordVec high1 = multiply_high(m1, c.word[2]);
        const WordVec low1 = hn::Mul(m1, c.word[2]);
        c.word[0] = hn::Xor(hn::Xor(high1, c.word[1]), hn::Set(d, k0));
        c.word[1] = low1;
        c.word[2] = hn::Xor(hn::Xor(high0, c.word[3]), hn::Set(d, k1));
        c.word[3] = low0;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return c;
}

// u = (word / 512 + ½) · 2^-23 lies strictly between 0 and 1 and is exact.
HWY_INLINE FloatVec gumbel(WordVec word) {
    const Floats d;
    const hn::Rebind<std::int32_t, Floats> di;
    const FloatVec steps = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<9>(word)));
    const FloatVec u = hn::Mul(hn::Add(steps, hn::Set(d, 0.5F)), hn::Set(d, 0x1p-23F));
    return hn::Neg(log_vec(hn::Neg(log_vec(u))));
}

HWY_ATTR void add_gumbel_kernel(const NoiseKey& key, float* x, std::size_t size) {
    constexpr std::size_t kTokensPerCall = 64;
    const Floats d;
    const Words dw;
    HWY_ALIGN float noise[kTokensPerCall];
    for (std::size_t first = 0; first < size; first += kTokensPerCall) {
        const std::size_t count = size - first < kTokensPerCall ? size - first : kTokensPerCall;
        for (std::size_t v = 0; v < kGroup; ++v) {
            const auto base = static_cast<std::uint32_t>(first / 4 + v * kLanes);
            Counter counter;
            counter.word[0] = hn::Iota(dw, base);
            counter.word[1] = hn::Set(dw, static_cast<std::uint32_t>(key.position));
            counter.word[2] = hn::Set(dw, static_cast<std::uint32_t>(key.position >> 32));
            counter.word[3] = hn::Set(dw, key.stream);
            const Counter random = philox(counter, key.seed);
            for (std::size_t w = 0; w < 4; ++w)
                hn::Store(gumbel(random.word[w]), d, noise + w * kReductionLanes + v * kLanes);
        }
        for (std::size_t i = 0; i < count; ++i) x[first + i] += noise[i];
    }
}

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::tensor {

HWY_EXPORT(add_gumbel_kernel);

void add_gumbel_noise(const NoiseKey& key, std::span<float> x) {
    HWY_DYNAMIC_DISPATCH(add_gumbel_kernel)(key, x.data(), x.size());
}

}  // namespace sluice::tensor
#endif  // HWY_ONCE
