#pragma once

// Weights in the order in which the matmul reads them (docs/exactness.md, rules 1 and 2).
//
// A matrix of N outputs and K inputs is cut into panels of 16 outputs. Within a panel, weights of
// one input for all 16 outputs lie side by side, so a vector lane is an output and every output is
// one chain over ascending k: equal bits for one row and for five hundred, on every vector width.
//
//   f32, f16, bf16   [N/16][K][16]
//   q8_0             [N/16][K/4][16][4] unsigned (value + 128), with scales [N/16][K/32][16]
//
// The last panel is padded with zeros.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/aligned_buffer.h"

namespace sluice::tensor {

inline constexpr std::size_t kPanelOutputs = 16;
inline constexpr std::size_t kQuantBlock = 32;  ///< Inputs that share one scale in q8_0.

enum class WeightType : std::uint8_t { kF32, kF16, kBf16, kQ8_0 };

[[nodiscard]] std::string_view to_string(WeightType type);

/// Bytes of a row-major [outputs][inputs] matrix as it lies in a GGUF file.
[[nodiscard]] std::size_t source_bytes(WeightType type, std::size_t outputs, std::size_t inputs);

class PackedMatrix {
public:
    PackedMatrix() = default;

    /// `source` is row-major [outputs][inputs] in GGUF's encoding, of any alignment.
    /// `kCorrupt` if its size is not that of the shape, `kUnsupported` if q8_0 meets inputs that are
    /// no multiple of 32.
    [[nodiscard]] static Result<PackedMatrix> pack(WeightType type, std::size_t outputs,
                                                   std::size_t inputs,
                                                   std::span<const std::byte> source);

    [[nodiscard]] WeightType type() const { return type_; }
    [[nodiscard]] std::size_t outputs() const { return outputs_; }
    [[nodiscard]] std::size_t inputs() const { return inputs_; }
    [[nodiscard]] std::size_t panels() const {
        return (outputs_ + kPanelOutputs - 1) / kPanelOutputs;
    }
    [[nodiscard]] std::size_t bytes() const { return weights_.size() + scales_.size(); }

    /// One panel's weights. f32, f16, bf16: [K][16]; q8_0: [K/4][16][4] bytes.
    template <class Weight>
    [[nodiscard]] const Weight* panel(std::size_t index) const {
        return reinterpret_cast<const Weight*>(weights_.data() + index * panel_bytes_);
    }
    /// One panel's scales [K/32][16]; q8_0 only.
    [[nodiscard]] const float* panel_scales(std::size_t index) const {
        return reinterpret_cast<const float*>(scales_.data()) +
               index * (inputs_ / kQuantBlock) * kPanelOutputs;
    }

private:
    WeightType type_ = WeightType::kF32;
    std::size_t outputs_ = 0;
    std::size_t inputs_ = 0;
    std::size_t panel_bytes_ = 0;
    AlignedBuffer weights_;
    AlignedBuffer scales_;
};

/// Row `row` of a row-major matrix in GGUF's encoding, widened to f32 (embedding look-up).
void widen_row(WeightType type, std::span<const std::byte> source, std::size_t inputs,
               std::size_t row, std::span<float> out);

}  // namespace sluice::tensor
