#include "tensor/packed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "tensor/half.h"

namespace sluice::tensor {
namespace {

constexpr std::size_t kQ8BlockBytes = 2 + kQuantBlock;  // f16 scale, then 32 signed bytes

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

// [16][K] of T becomes [K][16]; lanes without an output stay as they are.
template <class T>
void pack_plain(std::size_t lanes, std::size_t inputs, const std::byte* rows, T* panel) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::byte* row = rows + lane * inputs * sizeof(T);
        for (std::size_t k = 0; k < inputs; ++k)
            panel[k * kPanelOutputs + lane] = load<T>(row + k * sizeof(T));
    }
}

void pack_q8(std::size_t lanes, std::size_t inputs, const std::byte* rows, std::byte* panel) {
    const std::size_t blocks = inputs / kQuantBlock;
    auto* weights = reinterpret_cast<std::uint8_t*>(panel);
    auto* scales = reinterpret_cast<float*>(panel + inputs * kPanelOutputs);
    std::memset(weights, 128, inputs * kPanelOutputs);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        for (std::size_t block = 0; block < blocks; ++block) {
            const std::byte* from = rows + (lane * blocks + block) * kQ8BlockBytes;
            scales[block * kPanelOutputs + lane] = half_to_float(load<std::uint16_t>(from));
            std::uint8_t* to = weights + (block * kQuantBlock * kPanelOutputs + lane * 4);
            for (std::size_t i = 0; i < kQuantBlock; i += 4) {
                // Two's complement plus 128 is the same bits with the sign bit turned.
                const auto four = load<std::uint32_t>(from + 2 + i) ^ 0x8080'8080U;
                std::memcpy(to + i * kPanelOutputs, &four, sizeof(four));
            }
        }
    }
}

}  // namespace

std::string_view to_string(WeightType type) {
    switch (type) {
        case WeightType::kF32: return "f32";
        case WeightType::kF16: return "f16";
        case WeightType::kBf16: return "bf16";
        case WeightType::kQ8_0: return "q8_0";
    }
    return "unknown";
}

std::size_t source_bytes(WeightType type, std::size_t outputs, std::size_t inputs) {
    switch (type) {
        case WeightType::kF32: return outputs * inputs * sizeof(float);
        case WeightType::kF16:
        case WeightType::kBf16: return outputs * inputs * sizeof(std::uint16_t);
        case WeightType::kQ8_0: return outputs * (inputs / kQuantBlock) * kQ8BlockBytes;
    }
    return 0;
}

std::size_t MatrixShape::panel_bytes() const {
    switch (type) {
        case WeightType::kF32: return inputs * kPanelOutputs * sizeof(float);
        case WeightType::kF16:
        case WeightType::kBf16: return inputs * kPanelOutputs * sizeof(std::uint16_t);
        case WeightType::kQ8_0:
            return (inputs + inputs / kQuantBlock * sizeof(float)) * kPanelOutputs;
    }
    return 0;
}

Result<void> check_source(const MatrixShape& shape, std::span<const std::byte> source) {
    const auto& [type, outputs, inputs] = shape;
    if (type == WeightType::kQ8_0 && inputs % kQuantBlock != 0) {
        return std::unexpected(Error::unsupported(
            fmt::format("q8_0 needs a multiple of {} inputs, not {}", kQuantBlock, inputs)));
    }
    const std::size_t expected = source_bytes(type, outputs, inputs);
    if (source.size() != expected) {
        return std::unexpected(
            Error::corrupt(fmt::format("a {} matrix of {} x {} has {} bytes, not {}",
                                       to_string(type), outputs, inputs, expected, source.size())));
    }
    return {};
}

void pack_panels(const MatrixShape& shape, std::span<const std::byte> source, std::size_t first,
                 std::size_t count, std::span<std::byte> packed) {
    const std::size_t panel_bytes = shape.panel_bytes();
    SLUICE_ASSERT(first + count <= shape.panels() && packed.size() == count * panel_bytes);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t output = (first + i) * kPanelOutputs;
        const std::size_t lanes = std::min(kPanelOutputs, shape.outputs - output);
        const std::byte* rows = source.data() + source_bytes(shape.type, output, shape.inputs);
        std::byte* panel = packed.data() + i * panel_bytes;
        if (lanes < kPanelOutputs) std::memset(panel, 0, panel_bytes);
        switch (shape.type) {
            case WeightType::kF32:
                pack_plain(lanes, shape.inputs, rows, reinterpret_cast<std::uint32_t*>(panel));
                break;
            case WeightType::kF16:
            case WeightType::kBf16:
                pack_plain(lanes, shape.inputs, rows, reinterpret_cast<std::uint16_t*>(panel));
                break;
            case WeightType::kQ8_0: pack_q8(lanes, shape.inputs, rows, panel); break;
        }
    }
}

Result<PackedMatrix> PackedMatrix::pack(WeightType type, std::size_t outputs, std::size_t inputs,
                                        std::span<const std::byte> source) {
    const MatrixShape shape{.type = type, .outputs = outputs, .inputs = inputs};
    if (auto fits = check_source(shape, source); !fits) return std::unexpected(fits.error());
    AlignedBuffer memory(shape.packed_bytes());
    pack_panels(shape, source, 0, shape.panels(), {memory.data(), memory.size()});
    PackedMatrix matrix(shape, memory.data());
    matrix.own_ = std::move(memory);
    return matrix;
}

void widen_row(WeightType type, std::span<const std::byte> source, std::size_t inputs,
               std::size_t row, std::span<float> out) {
    const std::byte* from = source.data() + row * source_bytes(type, 1, inputs);
    for (std::size_t k = 0; k < inputs; ++k) {
        switch (type) {
            case WeightType::kF32: out[k] = load<float>(from + k * 4); break;
            case WeightType::kF16: out[k] = half_to_float(load<std::uint16_t>(from + k * 2)); break;
            case WeightType::kBf16:
                out[k] = bfloat_to_float(load<std::uint16_t>(from + k * 2));
                break;
            case WeightType::kQ8_0: {
                const std::byte* block = from + k / kQuantBlock * kQ8BlockBytes;
                out[k] = half_to_float(load<std::uint16_t>(block)) *
                         static_cast<float>(load<std::int8_t>(block + 2 + k % kQuantBlock));
                break;
            }
        }
    }
}

}  // namespace sluice::tensor
