#include "tensor/vector_ops.h"

#include <cmath>

#include "base/assert.h"
#include "tensor/transcendental.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/vector_ops.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "tensor/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {

// Calls body(index, vector width load/store) over whole vectors, then over a padded tail. `pad` fills
// the tail's missing elements.
template <class Body>
HWY_INLINE void for_each_vector(std::size_t size, const Body& body) {
    std::size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) body(i, kLanes);
    if (i < size) body(i, size - i);
}

HWY_INLINE FloatVec load_part(const float* from, std::size_t count, float pad) {
    const Floats d;
    if (count == kLanes) return hn::LoadU(d, from);
    HWY_ALIGN float lanes[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = i < count ? from[i] : pad;
    return hn::Load(d, lanes);
}

HWY_INLINE void store_part(FloatVec value, float* to, std::size_t count) {
    const Floats d;
    if (count == kLanes) return hn::StoreU(value, d, to);
    HWY_ALIGN float lanes[kLanes];
    hn::Store(value, d, lanes);
    for (std::size_t i = 0; i < count; ++i) to[i] = lanes[i];
}

HWY_ATTR float sum_of_squares(const float* x, std::size_t size) {
    const Floats d;
    FloatVec lanes[kGroup];
    for (FloatVec& lane : lanes) lane = hn::Zero(d);
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        const FloatVec value = load_part(x + i, count, 0.0F);
        FloatVec& lane = lanes[i / kLanes % kGroup];
        lane = hn::MulAdd(value, value, lane);
    });
    return tree_sum(lanes);
}

HWY_ATTR void scale_rows(const float* x, const float* weight, float scale, float* out,
                         std::size_t size) {
    const FloatVec factor = hn::Set(Floats(), scale);
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        const FloatVec value = hn::Mul(load_part(x + i, count, 0.0F), factor);
        store_part(hn::Mul(value, load_part(weight + i, count, 0.0F)), out + i, count);
    });
}

HWY_ATTR void silu_multiply_kernel(const float* gate, const float* up, float* out,
                                   std::size_t size) {
    const FloatVec one = hn::Set(Floats(), 1.0F);
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        const FloatVec g = load_part(gate + i, count, 0.0F);
        const FloatVec silu = hn::Div(g, hn::Add(one, exp_vec(hn::Neg(g))));
        store_part(hn::Mul(silu, load_part(up + i, count, 0.0F)), out + i, count);
    });
}

HWY_ATTR void add_kernel(float* x, const float* y, std::size_t size) {
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        store_part(hn::Add(load_part(x + i, count, 0.0F), load_part(y + i, count, 0.0F)), x + i,
                   count);
    });
}

HWY_ATTR void multiply_add_kernel(float* x, float factor, const float* y, std::size_t size) {
    const FloatVec f = hn::Set(Floats(), factor);
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        const FloatVec sum =
            hn::MulAdd(f, load_part(y + i, count, 0.0F), load_part(x + i, count, 0.0F));
        store_part(sum, x + i, count);
    });
}

HWY_ATTR void sigmoid_kernel(float* x, std::size_t size) {
    const FloatVec one = hn::Set(Floats(), 1.0F);
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        const FloatVec value = load_part(x + i, count, 0.0F);
        store_part(hn::Div(one, hn::Add(one, exp_vec(hn::Neg(value)))), x + i, count);
    });
}

HWY_ATTR float exp_kernel(const float* x, float shift, float* out, std::size_t size) {
    const Floats d;
    const FloatVec s = hn::Set(d, shift);
    FloatVec lanes[kGroup];
    for (FloatVec& lane : lanes) lane = hn::Zero(d);
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        // Padding of −∞ adds e^−∞ = 0 to its lane, which changes no bit of a sum that is not −0.
        const FloatVec value = exp_vec(hn::Sub(load_part(x + i, count, -HUGE_VALF), s));
        FloatVec& lane = lanes[i / kLanes % kGroup];
        lane = hn::Add(lane, value);
        store_part(value, out + i, count);
    });
    return tree_sum(lanes);
}

HWY_ATTR float max_kernel(const float* x, std::size_t size) {
    const Floats d;
    FloatVec largest = hn::Set(d, -HUGE_VALF);
    FloatVec nan = hn::Zero(d);
    for_each_vector(size, [&](std::size_t i, std::size_t count) HWY_ATTR {
        const FloatVec value = load_part(x + i, count, -HUGE_VALF);
        largest = hn::Max(largest, value);
        nan = hn::IfThenElse(hn::IsNaN(value), value, nan);
    });
    HWY_ALIGN float lanes[kLanes];
    hn::Store(nan, d, lanes);
    for (const float lane : lanes)
        if (std::isnan(lane)) return lane;
    return hn::GetLane(hn::MaxOfLanes(d, largest));
}

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::tensor {

HWY_EXPORT(sum_of_squares);
HWY_EXPORT(scale_rows);
HWY_EXPORT(silu_multiply_kernel);
HWY_EXPORT(add_kernel);
HWY_EXPORT(multiply_add_kernel);
HWY_EXPORT(sigmoid_kernel);
HWY_EXPORT(exp_kernel);
HWY_EXPORT(max_kernel);

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps,
              std::span<float> out) {
    SLUICE_ASSERT(x.size() == weight.size() && x.size() == out.size());
    const float sum = HWY_DYNAMIC_DISPATCH(sum_of_squares)(x.data(), x.size());
    const float scale = 1.0F / std::sqrt(sum / static_cast<float>(x.size()) + eps);
    HWY_DYNAMIC_DISPATCH(scale_rows)(x.data(), weight.data(), scale, out.data(), x.size());
}

void silu_multiply(std::span<const float> gate, std::span<const float> up, std::span<float> out) {
    SLUICE_ASSERT(gate.size() == up.size() && gate.size() == out.size());
    HWY_DYNAMIC_DISPATCH(silu_multiply_kernel)(gate.data(), up.data(), out.data(), gate.size());
}

void add_in_place(std::span<float> x, std::span<const float> y) {
    SLUICE_ASSERT(x.size() == y.size());
    HWY_DYNAMIC_DISPATCH(add_kernel)(x.data(), y.data(), x.size());
}

void multiply_add(std::span<float> x, float factor, std::span<const float> y) {
    SLUICE_ASSERT(x.size() == y.size());
    HWY_DYNAMIC_DISPATCH(multiply_add_kernel)(x.data(), factor, y.data(), x.size());
}

void sigmoid_in_place(std::span<float> x) {
    HWY_DYNAMIC_DISPATCH(sigmoid_kernel)(x.data(), x.size());
}

float exp_in_place(std::span<float> x, float shift) {
    return HWY_DYNAMIC_DISPATCH(exp_kernel)(x.data(), shift, x.data(), x.size());
}

float max_or_nan(std::span<const float> x) {
    SLUICE_ASSERT(!x.empty());
    return HWY_DYNAMIC_DISPATCH(max_kernel)(x.data(), x.size());
}

float log_sum_exp(std::span<const float> x, std::span<float> scratch) {
    SLUICE_ASSERT(scratch.size() >= x.size());
    const float largest = max_or_nan(x);
    const float sum = HWY_DYNAMIC_DISPATCH(exp_kernel)(x.data(), largest, scratch.data(), x.size());
    return static_cast<float>(static_cast<double>(largest) + natural_log(sum));
}

}  // namespace sluice::tensor
#endif  // HWY_ONCE
