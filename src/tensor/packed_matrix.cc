#include "tensor/packed_matrix.h"

#include <fmt/format.h>

#include <cstring>

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

// [N][K] of T becomes [N/16][K][16].
template <class T>
void pack_plain(std::size_t outputs, std::size_t inputs, const std::byte* source, T* packed) {
    for (std::size_t n = 0; n < outputs; ++n) {
        T* lane = packed + n / kPanelOutputs * inputs * kPanelOutputs + n % kPanelOutputs;
        const std::byte* row = source + n * inputs * sizeof(T);
        for (std::size_t k = 0; k < inputs; ++k) {
            lane[k * kPanelOutputs] = load<T>(row + k * sizeof(T));
        }
    }
}

void pack_q8(std::size_t outputs, std::size_t inputs, const std::byte* source, std::uint8_t* packed,
             float* scales) {
    const std::size_t blocks = inputs / kQuantBlock;
    for (std::size_t n = 0; n < outputs; ++n) {
        const std::size_t panel = n / kPanelOutputs;
        const std::size_t lane = n % kPanelOutputs;
        for (std::size_t block = 0; block < blocks; ++block) {
            const std::byte* from = source + (n * blocks + block) * kQ8BlockBytes;
            scales[(panel * blocks + block) * kPanelOutputs + lane] =
                half_to_float(load<std::uint16_t>(from));
            for (std::size_t i = 0; i < kQuantBlock; ++i) {
                const std::size_t k = block * kQuantBlock + i;
                const auto value = load<std::int8_t>(from + 2 + i);
                packed[panel * inputs * kPanelOutputs + k / 4 * (4 * kPanelOutputs) + lane * 4 +
                       k % 4] = static_cast<std::uint8_t>(value + 128);
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

Result<PackedMatrix> PackedMatrix::pack(WeightType type, std::size_t outputs, std::size_t inputs,
                                        std::span<const std::byte> source) {
    if (type == WeightType::kQ8_0 && inputs % kQuantBlock != 0) {
        return std::unexpected(Error::unsupported(
            fmt::format("q8_0 needs a multiple of {} inputs, not {}", kQuantBlock, inputs)));
    }
    if (source.size() != source_bytes(type, outputs, inputs)) {
        return std::unexpected(Error::corrupt(
            fmt::format("a {} matrix of {} x {} has {} bytes, not {}", to_string(type), outputs,
                        inputs, source_bytes(type, outputs, inputs), source.size())));
    }
    PackedMatrix matrix;
    matrix.type_ = type;
    matrix.outputs_ = outputs;
    matrix.inputs_ = inputs;
    const std::size_t element = type == WeightType::kF32 ? 4 : type == WeightType::kQ8_0 ? 1 : 2;
    matrix.panel_bytes_ = inputs * kPanelOutputs * element;
    matrix.weights_ = AlignedBuffer(matrix.panels() * matrix.panel_bytes_);
    switch (type) {
        case WeightType::kF32:
            pack_plain(outputs, inputs, source.data(), matrix.weights_.as<float>().data());
            break;
        case WeightType::kF16:
        case WeightType::kBf16:
            pack_plain(outputs, inputs, source.data(), matrix.weights_.as<std::uint16_t>().data());
            break;
        case WeightType::kQ8_0:
            matrix.scales_ =
                AlignedBuffer(matrix.panels() * (inputs / kQuantBlock) * kPanelOutputs * 4);
            std::memset(matrix.weights_.data(), 128, matrix.weights_.size());
            pack_q8(outputs, inputs, source.data(), matrix.weights_.as<std::uint8_t>().data(),
                    matrix.scales_.as<float>().data());
            break;
    }
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
