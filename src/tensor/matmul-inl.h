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
#include <limits>
#include <type_traits>

#include "tensor/dot-inl.h"
#include "tensor/math-inl.h"
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
inline constexpr std::size_t kVectors = kPanelOutputs / kLanes;  // per panel
inline constexpr std::size_t kRowsTile = HWY_CAP_GE512 ? 8 : 4;
inline constexpr std::size_t kPanelsTile = HWY_CAP_GE512 ? 2 : 1;
inline constexpr std::size_t kPanelsFewRows = 2 * kPanelsTile;
inline constexpr std::size_t kPanelsOneRow = HWY_CAP_GE512 ? 8 : 4;  // hides the chain's latency

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

// Calls tile<rows, kPanels>(first row, panel) until all rows of these panels are covered, with at most
// kRows rows a tile.
template <std::size_t kRows, std::size_t kPanels, class Tile>
HWY_INLINE void for_all_rows(std::size_t rows, std::size_t panel, const Tile& tile) {
    std::size_t row = 0;
    for (; row + kRows <= rows; row += kRows) tile.template operator()<kRows, kPanels>(row, panel);
    if constexpr (kRows > 4) {
        if (row + 4 <= rows) {
            tile.template operator()<4, kPanels>(row, panel);
            row += 4;
        }
    }
    if constexpr (kRows > 2) {
        if (row + 2 <= rows) {
            tile.template operator()<2, kPanels>(row, panel);
            row += 2;
        }
    }
    if constexpr (kRows > 1) {
        if (row < rows) tile.template operator()<1, kPanels>(row, panel);
    }
}

// Calls tile<rows, panels>(first row, first panel) until range and rows are covered. Few rows take more
// panels at a time, because it needs many chains at once to hide the latency of each; where there are
// registers for it, many rows do so, too, unless kWidens: widening a weight pays with eight rows.
template <bool kWidens, class Tile>
HWY_INLINE void for_each_tile(const MatmulShape& shape, PanelRange range, const Tile& tile) {
    std::size_t panel = range.begin;
    if (shape.rows == 1) {
        for (; panel + kPanelsOneRow <= range.end; panel += kPanelsOneRow)
            tile.template operator()<1, kPanelsOneRow>(0, panel);
    } else if (shape.rows < kRowsTile || (HWY_CAP_GE512 && !kWidens)) {
        for (; panel + kPanelsFewRows <= range.end; panel += kPanelsFewRows)
            for_all_rows<kRowsTile / 2, kPanelsFewRows>(shape.rows, panel, tile);
    }
    for (; panel + kPanelsTile <= range.end; panel += kPanelsTile)
        for_all_rows<kRowsTile, kPanelsTile>(shape.rows, panel, tile);
    for (; panel < range.end; ++panel) for_all_rows<kRowsTile, 1>(shape.rows, panel, tile);
}

template <class Weight>
HWY_INLINE void matmul_float(const PackedMatrix& weights, const float* x, float* y,
                             const MatmulShape& shape, PanelRange range) {
    for_each_tile<!std::is_same_v<Weight, float>>(
        shape, range,
        [&]<std::size_t kRows, std::size_t kPanels>(std::size_t row, std::size_t panel) HWY_ATTR {
            float_tile<Weight, kRows, kPanels>(weights.panel<Weight>(panel),
                                               x + row * shape.x_stride, y + row * shape.y_stride,
                                               shape, panel * kPanelOutputs);
        });
}

inline HWY_ATTR void matmul_f32(const PackedMatrix& weights, const float* x, float* y,
                                const MatmulShape& shape, PanelRange range) {
    matmul_float<float>(weights, x, y, shape, range);
}

inline HWY_ATTR void matmul_f16(const PackedMatrix& weights, const float* x, float* y,
                                const MatmulShape& shape, PanelRange range) {
    matmul_float<hwy::float16_t>(weights, x, y, shape, range);
}

inline HWY_ATTR void matmul_bf16(const PackedMatrix& weights, const float* x, float* y,
                                 const MatmulShape& shape, PanelRange range) {
    matmul_float<hwy::bfloat16_t>(weights, x, y, shape, range);
}

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
            const IntVec start =
                Dot::kSigned ? hn::Zero(di)
                             : hn::Set(di, x.corrections[(row + r) * x.block_stride + block]);
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
    for_each_tile<false>(
        shape, range,
        [&]<std::size_t kRows, std::size_t kPanels>(std::size_t row, std::size_t panel)
            HWY_ATTR { q8_tile<Dot, kRows, kPanels>(Dot(), weights, panel, x, row, y, shape); });
}

inline HWY_ATTR void matmul_q8(const PackedMatrix& weights, const QuantizedView& x, float* y,
                               const MatmulShape& shape, PanelRange range,
                               [[maybe_unused]] bool has_dot) {
#if HWY_TARGET == HWY_AVX3
    if (has_dot) return matmul_q8_with<VnniDot>(weights, x, y, shape, range);
#elif HWY_ARCH_ARM_A64
    if (has_dot) return matmul_q8_with<SdotDot>(weights, x, y, shape, range);
#endif
    matmul_q8_with<WideDot>(weights, x, y, shape, range);
}

using FourInts = hn::Rebind<std::int32_t, Four>;
using FourIntVec = hn::Vec<FourInts>;

struct Larger {
    template <class V>
    HWY_INLINE V operator()(V a, V b) const {
        return hn::Max(a, b);
    }
};
struct Sum {
    template <class V>
    HWY_INLINE V operator()(V a, V b) const {
        return hn::Add(a, b);
    }
};

// Sixteen integers become four. In any order: neither a maximum nor an integer sum depends on it.
template <class Op>
HWY_INLINE FourIntVec fold_to_four(const IntVec (&lanes)[kGroup], Op op) {
#if HWY_CAP_GE512
    const hn::Half<Ints> half;
    const auto eight = op(hn::LowerHalf(half, lanes[0]), hn::UpperHalf(half, lanes[0]));
    return op(hn::LowerHalf(FourInts(), eight), hn::UpperHalf(FourInts(), eight));
#elif HWY_CAP_GE256
    const IntVec eight = op(lanes[0], lanes[1]);
    return op(hn::LowerHalf(FourInts(), eight), hn::UpperHalf(FourInts(), eight));
#else
    return op(op(lanes[0], lanes[1]), op(lanes[2], lanes[3]));
#endif
}

// Each of four fours becomes one.
template <class Op>
HWY_INLINE FourIntVec fold_fours(FourIntVec a, FourIntVec b, FourIntVec c, FourIntVec e, Op op) {
    const FourInts d;
    const FourIntVec ab = op(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
    const FourIntVec ce = op(hn::ConcatLowerLower(d, e, c), hn::ConcatUpperUpper(d, e, c));
    return op(hn::ConcatEven(d, ce, ab), hn::ConcatOdd(d, ce, ab));
}

/// Adding this to |x| < 2^22 rounds x to an integer, half to even, and leaves it in the low bits.
inline constexpr float kRounder = 0x1.8p23F;
inline constexpr std::uint32_t kRounderBits = 0x4B400000U;

// Quantises kBlocks, 1 or 4, blocks that follow each other.
template <std::size_t kBlocks>
HWY_INLINE void quantize_blocks(const float* x, std::int8_t* values, float* scales,
                                std::int32_t* corrections) {
    const Floats d;
    const Ints di;
    const hn::Rebind<std::uint32_t, Floats> du;
    const hn::Rebind<std::uint8_t, Floats> d8;
    const Four four;
    FourIntVec folded[kBlocks];
#pragma GCC unroll 4
    for (std::size_t block = 0; block < kBlocks; ++block) {
        // Magnitudes are ordered as their bits are, with NaN above infinity.
        IntVec largest[kGroup];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kGroup; ++v) {
            const float* from = x + block * kQuantBlock + v * kLanes;
            largest[v] = hn::Max(hn::BitCast(di, hn::Abs(hn::LoadU(d, from))),
                                 hn::BitCast(di, hn::Abs(hn::LoadU(d, from + kReductionLanes))));
        }
        folded[block] = fold_to_four(largest, Larger());
    }
    const FourVec most =
        hn::BitCast(four, fold_fours(folded[0], folded[1 % kBlocks], folded[2 % kBlocks],
                                     folded[3 % kBlocks], Larger()));
    const FourVec limit = hn::Set(four, 127.0F);
    // An infinity or NaN makes the scale NaN.
    const FourVec scale = hn::Add(hn::Div(most, limit), hn::Sub(most, most));
    const FourVec inverse =
        hn::Min(hn::Div(limit, most), hn::Set(four, std::numeric_limits<float>::max()));
    HWY_ALIGN float inverses[4];
    hn::Store(hn::IfThenElseZero(hn::Gt(most, hn::Zero(four)), inverse), four, inverses);
    HWY_ALIGN float all_scales[4];
    hn::Store(scale, four, all_scales);
    std::memcpy(scales, all_scales, kBlocks * sizeof(float));
#pragma GCC unroll 4
    for (std::size_t block = 0; block < kBlocks; ++block) {
        const FloatVec factor = hn::Set(d, inverses[block]);
        IntVec sums[kGroup];
#pragma GCC unroll 4
        for (IntVec& sum : sums) sum = hn::Zero(di);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < 2 * kGroup; ++v) {
            const std::size_t i = block * kQuantBlock + v * kLanes;
            const FloatVec scaled = hn::Mul(hn::LoadU(d, x + i), factor);
            const FloatVec clamped =
                hn::Min(hn::Max(scaled, hn::Set(d, -127.0F)), hn::Set(d, 127.0F));
            const FloatVec rounded = hn::Add(clamped, hn::Set(d, kRounder));
            sums[v % kGroup] = hn::Add(sums[v % kGroup], hn::BitCast(di, rounded));
            hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, rounded)), d8,
                       reinterpret_cast<std::uint8_t*>(values) + i);
        }
        folded[block] = fold_to_four(sums, Sum());
    }
    const FourIntVec sum =
        fold_fours(folded[0], folded[1 % kBlocks], folded[2 % kBlocks], folded[3 % kBlocks], Sum());
    const FourIntVec excess =
        hn::Set(FourInts(), static_cast<std::int32_t>(kRounderBits * kQuantBlock));
    HWY_ALIGN std::int32_t all_corrections[4];
    hn::Store(hn::ShiftLeft<7>(hn::Sub(excess, sum)), FourInts(), all_corrections);
    std::memcpy(corrections, all_corrections, kBlocks * sizeof(std::int32_t));
}

inline HWY_ATTR void quantize_row(const float* x, std::size_t inputs, std::int8_t* values,
                                  float* scales, std::int32_t* corrections) {
    const std::size_t blocks = inputs / kQuantBlock;
    std::size_t block = 0;
    for (; block + 4 <= blocks; block += 4)
        quantize_blocks<4>(x + block * kQuantBlock, values + block * kQuantBlock, scales + block,
                           corrections + block);
    for (; block < blocks; ++block)
        quantize_blocks<1>(x + block * kQuantBlock, values + block * kQuantBlock, scales + block,
                           corrections + block);
}

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
