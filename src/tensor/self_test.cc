#include "tensor/self_test.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "base/assert.h"
#include "base/hash.h"
#include "tensor/attention.h"
#include "tensor/float_environment.h"
#include "tensor/gumbel.h"
#include "tensor/half.h"
#include "tensor/matmul.h"
#include "tensor/rope.h"
#include "tensor/target.h"
#include "tensor/vector_ops.h"

namespace sluice::tensor {
namespace {

/// Of arithmetic version 2 (math_constants.h).
constexpr std::string_view kDigest =
    "97ffcc33f0a7e731bac3df1d6bd4807296d3043cc45e7197f8eb5dee2237c84e";

// Numbers of every size from a counter: no library's generator, no floating-point function.
class Numbers {
public:
    float next() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        const auto bits = static_cast<std::uint32_t>(state_ >> 33);
        // Exponents of 2^-8 to 2^7, so that rounding happens everywhere and nothing overflows.
        return std::bit_cast<float>((bits & 0x807FFFFFU) | ((119U + (bits >> 23 & 15U)) << 23));
    }
    std::vector<float> take(std::size_t count) {
        std::vector<float> values(count);
        for (float& value : values) value = next();
        return values;
    }

private:
    std::uint64_t state_ = 1;
};

std::vector<std::byte> encode(WeightType type, std::span<const float> values) {
    std::vector<std::byte> out;
    const auto put = [&](auto value) {
        const auto raw = std::bit_cast<std::array<std::byte, sizeof(value)>>(value);
        out.insert(out.end(), raw.begin(), raw.end());
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(values[i]);
        if (type == WeightType::kF32) put(values[i]);
        if (type == WeightType::kF16) put(float_to_half(values[i]));
        if (type != WeightType::kQ8_0) continue;
        if (i % kQuantBlock == 0) put(float_to_half(values[i]));
        put(static_cast<std::int8_t>(bits & 0xFF));
    }
    return out;
}

void add(Sha256& hash, std::span<const float> values) { hash.update(std::as_bytes(values)); }

void add_matmuls(Sha256& hash, Numbers& numbers) {
    constexpr std::size_t kOutputs = 40;
    constexpr std::size_t kInputs = 96;
    constexpr std::size_t kRows = 11;
    const std::vector<float> x = numbers.take(kRows * kInputs);
    for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kQ8_0}) {
        const auto source = encode(type, numbers.take(kOutputs * kInputs));
        const auto weights = PackedMatrix::pack(type, kOutputs, kInputs, source);
        SLUICE_ASSERT(weights.has_value());
        std::vector<float> y(kRows * kOutputs);
        if (type == WeightType::kQ8_0) {
            QuantizedRows rows(kRows, kInputs);
            for (std::size_t row = 0; row < kRows; ++row)
                rows.quantize_row(row, x.data() + row * kInputs, kInputs);
            matmul(*weights, rows, 0, kRows, y.data(), kOutputs, {0, weights->panels()});
        } else {
            matmul(*weights, x.data(), kInputs, kRows, y.data(), kOutputs, {0, weights->panels()});
        }
        add(hash, y);
    }
}

void add_attention(Sha256& hash, Numbers& numbers) {
    const MlaShape shape{.heads = 2, .latent = 32, .rope = 16, .page_positions = 64, .scale = 0.1F};
    constexpr std::size_t kPages = 5;
    const std::vector<float> cache = numbers.take(kPages * 64 * shape.width());
    const std::vector<float> query = numbers.take(shape.heads * shape.width());
    const std::vector<std::uint32_t> order = {3, 0, 4, 1, 2};
    const PagedRows pages{.base = cache.data(), .stride = 64 * shape.width(), .index = order};
    std::vector<float> out(shape.heads * shape.latent);
    std::vector<float> scratch(shape.scratch());
    mla_attention(shape, query.data(), pages, 300, out.data(), scratch);
    add(hash, out);
}

void add_vectors(Sha256& hash, Numbers& numbers) {
    const std::vector<float> x = numbers.take(100);
    const std::vector<float> weight = numbers.take(100);
    std::vector<float> y(100);
    rms_norm(x, weight, 1e-6F, y);
    add(hash, y);
    silu_multiply(x, weight, y);
    add(hash, y);
    y = x;
    const float sum = exp_in_place(y, 3.0F);
    add(hash, y);
    add(hash, {&sum, 1});
    std::vector<float> noise(200, 0.0F);
    add_gumbel_noise({.seed = 42, .stream = 1, .position = 1'000'000}, noise);
    add(hash, noise);
    const RopeTable rope(32, 10'000.0, {.factor = 4.0, .original_context = 4096.0});
    std::vector<float> cos(16);
    std::vector<float> sin(16);
    rope.angles(100'003, cos, sin);
    add(hash, cos);
    add(hash, sin);
}

}  // namespace

std::string self_test_digest() {
    Sha256 hash;
    Numbers numbers;
    add_matmuls(hash, numbers);
    add_attention(hash, numbers);
    add_vectors(hash, numbers);
    return to_hex(hash.finish());
}

Result<void> self_test() {
    if (!float_environment_is_exact()) {
        return std::unexpected(
            Error(ErrorCode::kInternal,
                  "the floating-point environment flushes subnormals or doesn't round to nearest",
                  "self-test"));
    }
    const std::string digest = self_test_digest();
    if (digest == kDigest) return {};
    return std::unexpected(
        Error(ErrorCode::kInternal,
              fmt::format("kernels on target {} give {}, not {}: results would not be exact here",
                          to_string(current_target()), digest.substr(0, 12), kDigest.substr(0, 12)),
              "self-test"));
}

}  // namespace sluice::tensor
