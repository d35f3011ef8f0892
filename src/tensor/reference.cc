#include "tensor/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/half.h"
#include "tensor/math_constants.h"
#include "tensor/softmax_state.h"

namespace sluice::tensor::reference {
namespace {

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

float tree(std::array<float, kReductionLanes> lanes) {
    for (std::size_t half = kReductionLanes / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
}

float dot(std::span<const float> a, std::span<const float> b) {
    std::array<float, kReductionLanes> lanes{};
    for (std::size_t i = 0; i < a.size(); ++i) {
        float& lane = lanes[i % kReductionLanes];
        lane = std::fma(a[i], b[i], lane);
    }
    return tree(lanes);
}

float float_output(WeightType type, std::span<const std::byte> row, std::span<const float> x) {
    std::vector<float> weights(x.size());
    widen_row(type, row, x.size(), 0, weights);
    float acc = 0.0F;
    for (std::size_t k = 0; k < x.size(); ++k) acc = std::fma(x[k], weights[k], acc);
    return acc;
}

float q8_output(std::span<const std::byte> row, std::span<const float> x) {
    float acc = 0.0F;
    for (std::size_t block = 0; block < x.size() / kQuantBlock; ++block) {
        const std::span<const float> values = x.subspan(block * kQuantBlock, kQuantBlock);
        float most = 0.0F;
        for (const float value : values)
            if (!std::isnan(most) && !(std::fabs(value) <= most)) most = std::fabs(value);
        const bool finite = std::isfinite(most);
        const float scale = finite ? most / 127.0F : std::numeric_limits<float>::quiet_NaN();
        const float inverse = finite && most > 0.0F
                                  ? std::min(127.0F / most, std::numeric_limits<float>::max())
                                  : 0.0F;
        const std::byte* from = row.data() + block * (2 + kQuantBlock);
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < kQuantBlock; ++i) {
            const float rounded = std::nearbyint(values[i] * inverse);
            const auto q =
                finite ? static_cast<std::int32_t>(std::clamp(rounded, -127.0F, 127.0F)) : 0;
            sum += q * load<std::int8_t>(from + 2 + i);
        }
        const float w_scale = half_to_float(load<std::uint16_t>(from));
        acc = std::fma(static_cast<float>(sum), w_scale * scale, acc);
    }
    return acc;
}

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::uint64_t seed) {
    auto k0 = static_cast<std::uint32_t>(seed);
    auto k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c[0];
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c[2];
        c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
             static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return c;
}

}  // namespace

std::vector<float> matmul(WeightType type, std::size_t outputs, std::size_t inputs,
                          std::span<const std::byte> weights, std::span<const float> x) {
    const std::size_t row_bytes = source_bytes(type, 1, inputs);
    std::vector<float> y;
    for (std::size_t m = 0; m < x.size() / inputs; ++m) {
        const auto row = x.subspan(m * inputs, inputs);
        for (std::size_t n = 0; n < outputs; ++n) {
            const auto weight_row = weights.subspan(n * row_bytes, row_bytes);
            y.push_back(type == WeightType::kQ8_0 ? q8_output(weight_row, row)
                                                  : float_output(type, weight_row, row));
        }
    }
    return y;
}

float exp(float x) {
    if (std::isnan(x)) return x;
    if (x < kExpLow) return 0.0F;
    const float clamped = std::min(x, kExpHigh);
    const float n = std::nearbyint(clamped * kLog2E);
    const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, clamped));
    float p = kExpPoly[0];
    for (std::size_t i = 1; i < kExpPoly.size(); ++i) p = std::fma(p, r, kExpPoly[i]);
    const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127);
    return p * std::bit_cast<float>(exponent << 23);
}

float log(float x) {
    const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x)) - kSqrtHalfBits;
    const auto e = static_cast<float>(bits >> 23);
    const float m = std::bit_cast<float>((bits & 0x007FFFFF) + kSqrtHalfBits);
    const float s = (m - 1.0F) / (m + 1.0F);
    float p = kAtanhPoly[0];
    for (std::size_t i = 1; i < kAtanhPoly.size(); ++i) p = std::fma(p, s * s, kAtanhPoly[i]);
    return std::fma(e, kLn2High, std::fma(e, kLn2Low, (s + s) * p));
}

float lane_sum(std::span<const float> x) {
    std::array<float, kReductionLanes> lanes{};
    for (std::size_t i = 0; i < x.size(); ++i) lanes[i % kReductionLanes] += x[i];
    return tree(lanes);
}

std::vector<float> rms_norm(std::span<const float> x, std::span<const float> weight, float eps) {
    const float scale = 1.0F / std::sqrt(dot(x, x) / static_cast<float>(x.size()) + eps);
    std::vector<float> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
    return y;
}

std::vector<float> silu_multiply(std::span<const float> gate, std::span<const float> up) {
    std::vector<float> y(gate.size());
    for (std::size_t i = 0; i < gate.size(); ++i) y[i] = gate[i] / (1.0F + exp(-gate[i])) * up[i];
    return y;
}

std::vector<float> mla_attention(const MlaShape& shape, std::span<const float> query,
                                 std::span<const float> rows) {
    const std::size_t width = shape.width();
    const std::size_t positions = rows.size() / width;
    std::vector<float> out(shape.heads * shape.latent, 0.0F);
    for (std::size_t head = 0; head < shape.heads; ++head) {
        SoftmaxState state;
        for (std::size_t begin = 0; begin < positions; begin += kAttentionSplit) {
            const std::size_t count = std::min(kAttentionSplit, positions - begin);
            std::vector<float> scores(count);
            for (std::size_t i = 0; i < count; ++i)
                scores[i] = dot(query.subspan(head * width, width),
                                rows.subspan((begin + i) * width, width)) *
                            shape.scale;
            const float largest = *std::ranges::max_element(scores);
            for (float& score : scores) score = exp(score - largest);
            const float together = std::max(state.largest, largest);
            const float keep = exp(state.largest - together);
            const float add = exp(largest - together);
            for (std::size_t j = 0; j < shape.latent; ++j) {
                float split = 0.0F;
                for (std::size_t i = 0; i < count; ++i)
                    split = std::fma(scores[i], rows[(begin + i) * width + j], split);
                float& at = out[head * shape.latent + j];
                at = std::fma(split, add, at * keep);
            }
            state.sum = state.sum * keep + lane_sum(scores) * add;
            state.largest = together;
        }
        for (std::size_t j = 0; j < shape.latent; ++j) out[head * shape.latent + j] /= state.sum;
    }
    return out;
}

float gumbel_noise(const NoiseKey& key, std::uint32_t token) {
    const auto random =
        philox({token / 64 * 16 + token % 16, static_cast<std::uint32_t>(key.position),
                static_cast<std::uint32_t>(key.position >> 32), key.stream},
               key.seed);
    const auto steps = static_cast<float>(random[token / 16 % 4] >> 9);
    return -log(-log((steps + 0.5F) * 0x1p-23F));
}

}  // namespace sluice::tensor::reference
