// Matmul kernels, compiled once per vector target by matmul.cc.
//
// A tile is kRows x kPanels outputs held in registers; 512-bit targets have 32 registers, the others
// 16, hence two tile shapes. The order within one output never depends on the tile it falls into.

#if defined(SLUICE_TENSOR_MATMUL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_TENSOR_MATMUL_INL_H
#undef SLUICE_TENSOR_MATMUL_INL_H
#else
#define SLUICE_TENSOR_MATMUL_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "tensor/matmul.h"

#ifndef SLUICE_TENSOR_MATMUL_TYPES
#define SLUICE_TENSOR_MATMUL_TYPES
namespace sluice::tensor {
struct MatmulShape {
    std::size_t rows, inputs, outputs, x_stride, y_stride;
};
struct QuantizedView {
    const std::int8_t* values;
    const float* scales;
    const std::int32_t* corrections;
    std::size_t block_stride;
};
}  // namespace sluice::tensor
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kLanes = HWY_LANES(float);
inline constexpr std::size_t kVectors = kPanelOutputs / kLanes;  // per panel
inline constexpr std::size_t kRowsTile = HWY_CAP_GE512 ? 8 : 4;
inline constexpr std::size_t kPanelsTile = HWY_CAP_GE512 ? 2 : 1;
inline constexpr std::size_t kPanelsOneRow = HWY_CAP_GE512 ? 8 : 4;  // hides the chain's latency

using Floats = hn::ScalableTag<float>;
using FloatVec = hn::Vec<Floats>;

HWY_INLINE FloatVec load_weight(const float* from) { return hn::Load(Floats(), from); }
HWY_INLINE FloatVec load_weight(const hwy::float16_t* from) {
    const hn::Rebind<hwy::float16_t, Floats> half;
    return hn::PromoteTo(Floats(), hn::Load(half, from));
}

HWY_INLINE FloatVec load_weight(const hwy::bfloat16_t* from) {
    const hn::Rebind<hwy::bfloat16_t, Floats> half;
    return hn::PromoteTo(Floats(), hn::Load(half, from));
}

// Stores one panel's 16 outputs, or as many as the matrix has.
HWY_INLINE void store_panel(const FloatVec (&acc)[kVectors], float* y, std::size_t outputs) {
    const Floats d;
    if (outputs >= kPanelOutputs) {
        for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(acc[v], d, y + v * kLanes);
        return;
    }
    HWY_ALIGN float lanes[kPanelOutputs];
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(acc[v], d, lanes + v * kLanes);
    std::memcpy(y, lanes, outputs * sizeof(float));
}

template <class Weight, std::size_t kRows, std::size_t kPanels>
HWY_INLINE void float_tile(const Weight* weights, const float* x, float* y,
                           const MatmulShape& shape, std::size_t output) {
    const Floats d;
    const std::size_t panel_stride = shape.inputs * kPanelOutputs;
    FloatVec acc[kRows][kPanels][kVectors];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 16
        for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
            for (std::size_t v = 0; v < kVectors; ++v) acc[r][p][v] = hn::Zero(d);

    for (std::size_t k = 0; k < shape.inputs; ++k) {
        FloatVec w[kPanels][kVectors];
#pragma GCC unroll 16
        for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
            for (std::size_t v = 0; v < kVectors; ++v)
                w[p][v] = load_weight(weights + p * panel_stride + k * kPanelOutputs + v * kLanes);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < kRows; ++r) {
            const FloatVec a = hn::Set(d, x[r * shape.x_stride + k]);
#pragma GCC unroll 16
            for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v)
                    acc[r][p][v] = hn::MulAdd(a, w[p][v], acc[r][p][v]);
        }
    }
    for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t p = 0; p < kPanels; ++p)
            store_panel(acc[r][p], y + r * shape.y_stride + output + p * kPanelOutputs,
                        shape.outputs - output - p * kPanelOutputs);
}

// Calls tile<rows, panels>(first row, first panel) until range and rows are covered.
template <class Tile>
HWY_INLINE void for_each_tile(const MatmulShape& shape, PanelRange range, const Tile& tile) {
    std::size_t panel = range.begin;
    if (shape.rows == 1) {
        for (; panel + kPanelsOneRow <= range.end; panel += kPanelsOneRow)
            tile.template operator()<1, kPanelsOneRow>(0, panel);
    }
    for (; panel < range.end;) {
        const bool full = panel + kPanelsTile <= range.end;
        std::size_t row = 0;
        if (full) {
            for (; row + kRowsTile <= shape.rows; row += kRowsTile)
                tile.template operator()<kRowsTile, kPanelsTile>(row, panel);
            for (; row + 2 <= shape.rows; row += 2)
                tile.template operator()<2, kPanelsTile>(row, panel);
            for (; row < shape.rows; ++row) tile.template operator()<1, kPanelsTile>(row, panel);
            panel += kPanelsTile;
        } else {
            for (; row + kRowsTile <= shape.rows; row += kRowsTile)
                tile.template operator()<kRowsTile, 1>(row, panel);
            for (; row < shape.rows; ++row) tile.template operator()<1, 1>(row, panel);
            ++panel;
        }
    }
}

template <class Weight>
HWY_INLINE void matmul_float(const PackedMatrix& weights, const float* x, float* y,
                             const MatmulShape& shape, PanelRange range) {
    for_each_tile(
        shape, range,
        [&]<std::size_t kRows, std::size_t kPanels>(std::size_t row, std::size_t panel) HWY_ATTR {
            float_tile<Weight, kRows, kPanels>(weights.panel<Weight>(panel),
                                               x + row * shape.x_stride, y + row * shape.y_stride,
                                               shape, panel * kPanelOutputs);
        });
}

HWY_ATTR void matmul_f32(const PackedMatrix& weights, const float* x, float* y,
                         const MatmulShape& shape, PanelRange range) {
    matmul_float<float>(weights, x, y, shape, range);
}

HWY_ATTR void matmul_f16(const PackedMatrix& weights, const float* x, float* y,
                         const MatmulShape& shape, PanelRange range) {
    matmul_float<hwy::float16_t>(weights, x, y, shape, range);
}

HWY_ATTR void matmul_bf16(const PackedMatrix& weights, const float* x, float* y,
                          const MatmulShape& shape, PanelRange range) {
    matmul_float<hwy::bfloat16_t>(weights, x, y, shape, range);
}

using Ints = hn::Rebind<std::int32_t, Floats>;
using IntVec = hn::Vec<Ints>;

// Exact Σ of four products per lane: unsigned weights times signed activations, without VNNI's
// instruction. Bytes are widened to 16 bits, so that no intermediate can saturate.
struct WideDot {
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

#if HWY_TARGET == HWY_AVX3
// The same in one instruction. Written as assembly because Highway 1.0.3 has neither a four-way
// integer dot nor a target that allows this intrinsic; callers check the processor.
struct VnniDot {
    HWY_INLINE IntVec operator()(IntVec acc, IntVec weights, std::int32_t activations) const {
        const __m512i broadcast = _mm512_set1_epi32(activations);
        asm("vpdpbusd %2, %1, %0" : "+v"(acc.raw) : "v"(weights.raw), "v"(broadcast));
        return acc;
    }
};
#endif

template <class Dot, std::size_t kRows, std::size_t kPanels>
HWY_INLINE void q8_tile(const Dot& dot, const PackedMatrix& weights, std::size_t panel,
                        const QuantizedView& x, std::size_t row, float* y,
                        const MatmulShape& shape) {
    const Floats d;
    const Ints di;
    const hn::Repartition<std::uint8_t, Ints> d8;
    const std::size_t blocks = shape.inputs / kQuantBlock;
    FloatVec acc[kRows][kPanels][kVectors];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 16
        for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
            for (std::size_t v = 0; v < kVectors; ++v) acc[r][p][v] = hn::Zero(d);

    for (std::size_t block = 0; block < blocks; ++block) {
        IntVec sum[kRows][kPanels][kVectors];
#pragma GCC unroll 16
        for (std::size_t r = 0; r < kRows; ++r) {
            const IntVec start = hn::Set(di, x.corrections[(row + r) * x.block_stride + block]);
#pragma GCC unroll 16
            for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v) sum[r][p][v] = start;
        }
        for (std::size_t i = 0; i < kQuantBlock; i += 4) {
            const std::size_t k = block * kQuantBlock + i;
            IntVec w[kPanels][kVectors];
#pragma GCC unroll 16
            for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v)
                    w[p][v] = hn::BitCast(di, hn::Load(d8, weights.panel<std::uint8_t>(panel + p) +
                                                               k * kPanelOutputs + v * kLanes * 4));
#pragma GCC unroll 16
            for (std::size_t r = 0; r < kRows; ++r) {
                std::int32_t a = 0;
                std::memcpy(&a, x.values + (row + r) * shape.x_stride + k, sizeof(a));
#pragma GCC unroll 16
                for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
                    for (std::size_t v = 0; v < kVectors; ++v)
                        sum[r][p][v] = dot(sum[r][p][v], w[p][v], a);
            }
        }
#pragma GCC unroll 16
        for (std::size_t r = 0; r < kRows; ++r) {
            const FloatVec x_scale = hn::Set(d, x.scales[(row + r) * x.block_stride + block]);
#pragma GCC unroll 16
            for (std::size_t p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v) {
                    const FloatVec w_scale = hn::Load(
                        d, weights.panel_scales(panel + p) + block * kPanelOutputs + v * kLanes);
                    acc[r][p][v] = hn::MulAdd(hn::ConvertTo(d, sum[r][p][v]),
                                              hn::Mul(w_scale, x_scale), acc[r][p][v]);
                }
        }
    }
    for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t p = 0; p < kPanels; ++p) {
            const std::size_t output = (panel + p) * kPanelOutputs;
            store_panel(acc[r][p], y + (row + r) * shape.y_stride + output, shape.outputs - output);
        }
}

template <class Dot>
HWY_INLINE void matmul_q8_with(const PackedMatrix& weights, const QuantizedView& x, float* y,
                               const MatmulShape& shape, PanelRange range) {
    for_each_tile(
        shape, range,
        [&]<std::size_t kRows, std::size_t kPanels>(std::size_t row, std::size_t panel)
            HWY_ATTR { q8_tile<Dot, kRows, kPanels>(Dot(), weights, panel, x, row, y, shape); });
}

HWY_ATTR void matmul_q8(const PackedMatrix& weights, const QuantizedView& x, float* y,
                        const MatmulShape& shape, PanelRange range, [[maybe_unused]] bool vnni) {
#if HWY_TARGET == HWY_AVX3
    if (vnni) return matmul_q8_with<VnniDot>(weights, x, y, shape, range);
#endif
    matmul_q8_with<WideDot>(weights, x, y, shape, range);
}

HWY_ATTR void quantize_row(const float* x, std::size_t inputs, std::int8_t* values, float* scales,
                           std::int32_t* corrections) {
    const Floats d;
    const Ints di;
    const hn::Rebind<std::int8_t, Floats> d8;
    for (std::size_t block = 0; block < inputs / kQuantBlock; ++block) {
        const float* from = x + block * kQuantBlock;
        FloatVec largest = hn::Zero(d);
        for (std::size_t i = 0; i < kQuantBlock; i += kLanes)
            largest = hn::Max(largest, hn::Abs(hn::LoadU(d, from + i)));
        // The maximum is the same in any order, so Highway's reduction is safe here.
        const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
        scales[block] = most / 127.0F;
        const FloatVec inverse = hn::Set(d, most > 0.0F ? 127.0F / most : 0.0F);
        IntVec sum = hn::Zero(di);
        for (std::size_t i = 0; i < kQuantBlock; i += kLanes) {
            IntVec value = hn::NearestInt(hn::Mul(hn::LoadU(d, from + i), inverse));
            value = hn::Min(hn::Max(value, hn::Set(di, -127)), hn::Set(di, 127));
            sum = hn::Add(sum, value);
            hn::StoreU(hn::DemoteTo(d8, value), d8, values + block * kQuantBlock + i);
        }
        corrections[block] = -128 * hn::GetLane(hn::SumOfLanes(di, sum));
    }
}

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
