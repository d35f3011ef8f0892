#include "tensor/matmul.h"

#include "base/assert.h"
#include "tensor/target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/matmul.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "tensor/matmul-inl.h"

#if HWY_ONCE
namespace sluice::tensor {

HWY_EXPORT(matmul_f32);
HWY_EXPORT(matmul_f16);
HWY_EXPORT(matmul_bf16);
HWY_EXPORT(matmul_q8);
HWY_EXPORT(quantize_row);

QuantizedRows::QuantizedRows(std::size_t rows_max, std::size_t inputs_max)
    : inputs_max_((inputs_max + kQuantBlock - 1) / kQuantBlock * kQuantBlock),
      values_(rows_max * inputs_max_),
      scales_(rows_max * (inputs_max_ / kQuantBlock)),
      corrections_(rows_max * (inputs_max_ / kQuantBlock) * sizeof(std::int32_t)) {}

void QuantizedRows::quantize_row(std::size_t row, const float* x, std::size_t inputs) {
    SLUICE_ASSERT(inputs % kQuantBlock == 0 && inputs <= inputs_max_);
    const std::size_t blocks = inputs_max_ / kQuantBlock;
    HWY_DYNAMIC_DISPATCH(quantize_row)
    (x, inputs, values_.as<std::int8_t>().data() + row * inputs_max_, scales_.data() + row * blocks,
     corrections_.as<std::int32_t>().data() + row * blocks);
}

void matmul(const PackedMatrix& weights, const float* x, std::size_t x_stride, std::size_t rows,
            float* y, std::size_t y_stride, PanelRange range) {
    SLUICE_ASSERT(range.end <= weights.panels());
    const MatmulShape shape{rows, weights.inputs(), weights.outputs(), x_stride, y_stride};
    if (weights.type() == WeightType::kF32) {
        HWY_DYNAMIC_DISPATCH(matmul_f32)(weights, x, y, shape, range);
    } else if (weights.type() == WeightType::kBf16) {
        HWY_DYNAMIC_DISPATCH(matmul_bf16)(weights, x, y, shape, range);
    } else {
        SLUICE_ASSERT(weights.type() == WeightType::kF16);
        HWY_DYNAMIC_DISPATCH(matmul_f16)(weights, x, y, shape, range);
    }
}

void matmul(const PackedMatrix& weights, const QuantizedRows& x, std::size_t first_row,
            std::size_t rows, float* y, std::size_t y_stride, PanelRange range) {
    SLUICE_ASSERT(weights.type() == WeightType::kQ8_0 && range.end <= weights.panels());
    const MatmulShape shape{rows, weights.inputs(), weights.outputs(), x.stride(), y_stride};
    const QuantizedView view{x.values(first_row), x.scales(first_row), x.corrections(first_row),
                             x.stride() / kQuantBlock};
    const Target target = current_target();
    const bool has_dot = target == Target::kAvx512Vnni || target == Target::kNeonDot;
    HWY_DYNAMIC_DISPATCH(matmul_q8)(weights, view, y, shape, range, has_dot);
}

}  // namespace sluice::tensor
#endif  // HWY_ONCE
