#pragma once

// The specification of every kernel: plain loops over std::fma, in the order that
// docs/exactness.md fixes. Slow on purpose; tests compare the kernels with these bit for bit.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/attention.h"
#include "tensor/gumbel.h"
#include "tensor/packed_matrix.h"

namespace sluice::tensor::reference {

/// y [rows][outputs] from x [rows][inputs] and a row-major matrix in GGUF's encoding.
[[nodiscard]] std::vector<float> matmul(WeightType type, std::size_t outputs, std::size_t inputs,
                                        std::span<const std::byte> weights,
                                        std::span<const float> x);

[[nodiscard]] float exp(float x);
[[nodiscard]] float log(float x);

/// Lane = index mod 16, each a chain of additions, then the tree +8, +4, +2, +1.
[[nodiscard]] float lane_sum(std::span<const float> x);

[[nodiscard]] std::vector<float> rms_norm(std::span<const float> x, std::span<const float> weight,
                                          float eps);
[[nodiscard]] std::vector<float> silu_multiply(std::span<const float> gate,
                                               std::span<const float> up);

/// `rows` [positions][width] contiguous; `query` [heads][width]; returns [heads][latent].
[[nodiscard]] std::vector<float> mla_attention(const MlaShape& shape, std::span<const float> query,
                                               std::span<const float> rows);

/// The noise of one token.
[[nodiscard]] float gumbel_noise(const NoiseKey& key, std::uint32_t token);

}  // namespace sluice::tensor::reference
