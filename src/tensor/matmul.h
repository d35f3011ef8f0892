#pragma once

// y[m][n] = Σ_k x[m][k] · W[n][k] over packed weights, bit-identical for every batch size, split and
// vector width: each output is one chain of fused multiply-adds over ascending k that starts at +0.
// For q8_0 the chain runs over blocks of 32: the integer dot of a block is exact, then
// acc = fma(float(dot), w_scale · x_scale, acc).

#include <cstddef>
#include <cstdint>

#include "tensor/aligned_buffer.h"
#include "tensor/packed_matrix.h"

namespace sluice::tensor {

/// Rows as q8_0 kernels read them: signed bytes, one scale per row and block of 32.
class QuantizedRows {
public:
    QuantizedRows() = default;
    QuantizedRows(std::size_t rows_max, std::size_t inputs_max);

    /// Quantises row `row` of `x`: scale = max|x| / 127 per block, values rounded half to even and
    /// clamped to ±127. `inputs` is a multiple of 32. Different rows may be done by different threads.
    void quantize_row(std::size_t row, const float* x, std::size_t inputs);

    [[nodiscard]] const std::int8_t* values(std::size_t row) const {
        return reinterpret_cast<const std::int8_t*>(values_.data()) + row * inputs_max_;
    }
    [[nodiscard]] const float* scales(std::size_t row) const {
        return scales_.data() + row * (inputs_max_ / kQuantBlock);
    }
    /// −128 · Σ of each block: undoes the +128 of the packed weights.
    [[nodiscard]] const std::int32_t* corrections(std::size_t row) const {
        return reinterpret_cast<const std::int32_t*>(corrections_.data()) +
               row * (inputs_max_ / kQuantBlock);
    }
    [[nodiscard]] std::size_t stride() const { return inputs_max_; }

private:
    std::size_t inputs_max_ = 0;
    AlignedBuffer values_;
    FloatBuffer scales_;
    AlignedBuffer corrections_;
};

/// A range of panels of one matrix: what one thread computes.
struct PanelRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// f32, f16 and bf16 weights. `x` is [rows] of `x_stride` floats, `y` [rows] of `y_stride`; only outputs of
/// `range` are written.
void matmul(const PackedMatrix& weights, const float* x, std::size_t x_stride, std::size_t rows,
            float* y, std::size_t y_stride, PanelRange range);

/// q8_0 weights. Row r of the result comes from row `first_row + r` of `x`.
void matmul(const PackedMatrix& weights, const QuantizedRows& x, std::size_t first_row,
            std::size_t rows, float* y, std::size_t y_stride, PanelRange range);

}  // namespace sluice::tensor
