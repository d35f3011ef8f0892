#pragma once

// Weights in the order in which the matmul reads them (docs/exactness.md, rules 1 and 2).
//
// A matrix of N outputs and K inputs is cut into panels of 16 outputs. Within a panel, weights of
// one input for all 16 outputs lie side by side, so a vector lane is an output and every output is
// one chain over ascending k: equal bits for one row and for five hundred, on every vector width.
//
//   f32, f16, bf16   [N/16] of [K][16]
//   q8_0             [N/16] of [K/4][16][4] unsigned (value + 128), then scales [K/32][16] in f32
//
// The last panel is padded with zeros. A panel's bytes depend on its own outputs alone, so panels are
// packed in any order, by anybody, into whatever memory they are wanted in.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/aligned_buffer.h"

namespace sluice::tensor {

inline constexpr std::size_t kPanelOutputs = 16;
inline constexpr std::size_t kQuantBlock = 32;  ///< Inputs that share one scale in q8_0.

/// Raised by every change of the bytes that `pack_panels` writes: stored packed weights of another
/// version are built again.
inline constexpr std::uint32_t kPackingVersion = 1;

enum class WeightType : std::uint8_t { kF32, kF16, kBf16, kQ8_0 };

[[nodiscard]] std::string_view to_string(WeightType type);

/// Bytes of a row-major [outputs][inputs] matrix as it lies in a GGUF file.
[[nodiscard]] std::size_t source_bytes(WeightType type, std::size_t outputs, std::size_t inputs);

/// A matrix before and after packing.
struct MatrixShape {
    WeightType type = WeightType::kF32;
    std::size_t outputs = 0;
    std::size_t inputs = 0;

    [[nodiscard]] std::size_t panels() const {
        return (outputs + kPanelOutputs - 1) / kPanelOutputs;
    }
    /// Of one packed panel, its scales included.
    [[nodiscard]] std::size_t panel_bytes() const;
    [[nodiscard]] std::size_t packed_bytes() const { return panels() * panel_bytes(); }
};

/// Whether `source` may be packed as `shape`: `kCorrupt` if its size is not that of the shape,
/// `kUnsupported` if q8_0 meets inputs that are no multiple of 32.
[[nodiscard]] Result<void> check_source(const MatrixShape& shape,
                                        std::span<const std::byte> source);

/// Writes panels [first, first + count) of a checked source, row-major [outputs][inputs] in GGUF's
/// encoding and of any alignment. `packed` has count * panel_bytes() bytes and is aligned for floats.
void pack_panels(const MatrixShape& shape, std::span<const std::byte> source, std::size_t first,
                 std::size_t count, std::span<std::byte> packed);

/// Reads packed weights, in memory of its own or in somebody else's.
class PackedMatrix {
public:
    PackedMatrix() = default;

    /// Packs into memory of its own. Errors are those of check_source.
    [[nodiscard]] static Result<PackedMatrix> pack(WeightType type, std::size_t outputs,
                                                   std::size_t inputs,
                                                   std::span<const std::byte> source);

    /// Looks at `shape.packed_bytes()` bytes that start on a cache line and outlive the matrix.
    PackedMatrix(const MatrixShape& shape, const std::byte* packed)
        : shape_(shape), panel_bytes_(shape.panel_bytes()), packed_(packed) {}

    [[nodiscard]] WeightType type() const { return shape_.type; }
    [[nodiscard]] std::size_t outputs() const { return shape_.outputs; }
    [[nodiscard]] std::size_t inputs() const { return shape_.inputs; }
    [[nodiscard]] std::size_t panels() const { return shape_.panels(); }
    [[nodiscard]] std::size_t bytes() const { return panels() * panel_bytes_; }

    /// One panel's weights. f32, f16, bf16: [K][16]; q8_0: [K/4][16][4] bytes.
    template <class Weight>
    [[nodiscard]] const Weight* panel(std::size_t index) const {
        return reinterpret_cast<const Weight*>(packed_ + index * panel_bytes_);
    }
    /// One panel's scales [K/32][16]; q8_0 only.
    [[nodiscard]] const float* panel_scales(std::size_t index) const {
        return reinterpret_cast<const float*>(packed_ + index * panel_bytes_ +
                                              shape_.inputs * kPanelOutputs);
    }

private:
    MatrixShape shape_;
    std::size_t panel_bytes_ = 0;
    const std::byte* packed_ = nullptr;
    AlignedBuffer own_;  ///< Behind `packed_`, or empty.
};

/// Row `row` of a row-major matrix in GGUF's encoding, widened to f32 (embedding look-up).
void widen_row(WeightType type, std::span<const std::byte> source, std::size_t inputs,
               std::size_t row, std::span<float> out);

}  // namespace sluice::tensor
