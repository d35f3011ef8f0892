#pragma once

// Element-wise and row-wise kernels. Rows are contiguous f32; sizes are in elements and may be any
// number. Horizontal sums follow rule 3 of docs/exactness.md.

#include <cstddef>
#include <span>

namespace sluice::tensor {

/// out = x / √(mean(x²) + eps) · weight; `out` may be `x`.
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps,
              std::span<float> out);

/// out = gate / (1 + e^−gate) · up; `out` may be either input.
void silu_multiply(std::span<const float> gate, std::span<const float> up, std::span<float> out);

/// x += y
void add_in_place(std::span<float> x, std::span<const float> y);

/// x = fma(factor, y, x)
void multiply_add(std::span<float> x, float factor, std::span<const float> y);

/// x = 1 / (1 + e^−x)
void sigmoid_in_place(std::span<float> x);

/// x = e^(x − shift), returning the sum in rule 3's order. NaN elements make it NaN.
float exp_in_place(std::span<float> x, float shift);

/// Largest element; NaN if any element is NaN. `x` is not empty.
[[nodiscard]] float max_or_nan(std::span<const float> x);

/// ln Σ e^x over the row, in rule 3's order.
[[nodiscard]] float log_sum_exp(std::span<const float> x, std::span<float> scratch);

}  // namespace sluice::tensor
