// Every kernel against its scalar specification, bit for bit, on every target of this machine.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tensor/attention.h"
#include "tensor/gumbel.h"
#include "tensor/half.h"
#include "tensor/matmul.h"
#include "tensor/reference.h"
#include "tensor/target.h"
#include "tensor/vector_ops.h"

namespace sluice::tensor {
namespace {

std::vector<std::uint32_t> bits(std::span<const float> values) {
    std::vector<std::uint32_t> result;
    for (const float value : values) {
        // All NaNs are one: which payload survives is not a promise.
        result.push_back(std::isnan(value) ? 0x7FC00000U : std::bit_cast<std::uint32_t>(value));
    }
    return result;
}

std::vector<float> random_floats(std::size_t count, std::uint32_t seed, float scale = 1.0F) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0F, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

// Zeros of both signs, subnormals, huge and tiny values among ordinary ones.
std::vector<float> adversarial_floats(std::size_t count, std::uint32_t seed) {
    constexpr std::array<float, 8> kOdd = {0.0F,  -0.0F,  1e-42F, -1e-40F,
                                           1e30F, -1e30F, 1e-30F, 3.0000002F};
    std::vector<float> values = random_floats(count, seed);
    std::mt19937 random(seed + 1);
    for (float& value : values)
        if (random() % 4 == 0) value = kOdd[random() % kOdd.size()];
    return values;
}

std::vector<std::byte> encode(WeightType type, std::span<const float> values) {
    std::vector<std::byte> out;
    const auto put = [&](auto value) {
        const auto raw = std::bit_cast<std::array<std::byte, sizeof(value)>>(value);
        out.insert(out.end(), raw.begin(), raw.end());
    };
    std::mt19937 random(99);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (type == WeightType::kF32) put(values[i]);
        if (type == WeightType::kF16) put(float_to_half(values[i]));
        if (type == WeightType::kBf16)
            put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16));
        if (type == WeightType::kQ8_0) {
            if (i % kQuantBlock == 0) put(float_to_half(std::fabs(values[i]) / 100.0F));
            put(static_cast<std::int8_t>(random() % 256 - 128));
        }
    }
    return out;
}

class KernelsTest : public testing::TestWithParam<Target> {
protected:
    void SetUp() override { ASSERT_TRUE(use_target(GetParam()).has_value()); }
    void TearDown() override { ASSERT_TRUE(use_target(available_targets().back()).has_value()); }
};

INSTANTIATE_TEST_SUITE_P(Targets, KernelsTest, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return std::string(to_string(info.param)); });

std::vector<float> run_matmul(const PackedMatrix& matrix, std::span<const float> x,
                              std::size_t rows, std::size_t threads) {
    const std::size_t inputs = matrix.inputs();
    std::vector<float> y(rows * matrix.outputs());
    QuantizedRows quantized(rows, inputs);
    if (matrix.type() == WeightType::kQ8_0)
        for (std::size_t m = 0; m < rows; ++m)
            quantized.quantize_row(m, x.data() + m * inputs, inputs);
    for (std::size_t t = 0; t < threads; ++t) {
        const PanelRange range{matrix.panels() * t / threads, matrix.panels() * (t + 1) / threads};
        if (matrix.type() == WeightType::kQ8_0)
            matmul(matrix, quantized, 0, rows, y.data(), matrix.outputs(), range);
        else
            matmul(matrix, x.data(), inputs, rows, y.data(), matrix.outputs(), range);
    }
    return y;
}

TEST_P(KernelsTest, MatmulHasTheBitsOfItsSpecificationForEveryBatchAndSplit) {
    struct Shape {
        std::size_t outputs, inputs;
    };
    for (const WeightType type :
         {WeightType::kF32, WeightType::kF16, WeightType::kBf16, WeightType::kQ8_0}) {
        for (const Shape shape : {Shape{16, 32}, {1, 32}, {50, 96}, {160, 64}, {33, 7}}) {
            if (type == WeightType::kQ8_0 && shape.inputs % kQuantBlock != 0) continue;
            const auto source = encode(type, random_floats(shape.outputs * shape.inputs, 5));
            const auto matrix = PackedMatrix::pack(type, shape.outputs, shape.inputs, source);
            ASSERT_TRUE(matrix.has_value()) << matrix.error().to_string();
            const auto x = adversarial_floats(33 * shape.inputs, 7);
            const auto expected = reference::matmul(type, shape.outputs, shape.inputs, source, x);
            for (std::size_t rows = 1; rows <= 33; ++rows) {
                const auto y = run_matmul(*matrix, x, rows, 1 + rows % 3);
                ASSERT_EQ(bits(y), bits(std::span(expected).first(y.size())))
                    << to_string(type) << " " << shape.outputs << "x" << shape.inputs << " rows "
                    << rows;
            }
        }
    }
}

TEST_P(KernelsTest, QuantisedRowsKeepTheirBitsAtTheEdgesOfFloats) {
    constexpr std::size_t kOutputs = 20;
    constexpr std::size_t kInputs = 192;  // Six blocks: four at once, and two alone.
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const auto source = encode(WeightType::kQ8_0, random_floats(kOutputs * kInputs, 5));
    const auto matrix = PackedMatrix::pack(WeightType::kQ8_0, kOutputs, kInputs, source);
    ASSERT_TRUE(matrix.has_value());
    std::vector<float> x(kInputs, 0.0F);  // Zeros; then one row for each odd value, in one block.
    for (const float odd : {1e-42F, 1e-38F, 3e38F, -3e38F, HUGE_VALF, -HUGE_VALF, kNan}) {
        for (const std::size_t at : {std::size_t{33}, kInputs - 1}) {
            auto row = random_floats(kInputs, 8);
            std::fill_n(row.begin() + static_cast<std::ptrdiff_t>(at / 32 * 32), 32, 0.0F);
            row[at] = odd;
            row[at / 32 * 32 + 5] = -odd / 3.0F;
            x.insert(x.end(), row.begin(), row.end());
        }
    }
    const std::size_t rows = x.size() / kInputs;
    const auto y = run_matmul(*matrix, x, rows, 1);
    EXPECT_EQ(bits(y), bits(reference::matmul(WeightType::kQ8_0, kOutputs, kInputs, source, x)));
    // The last three pairs of rows hold no number, and neither do their outputs.
    for (std::size_t row = 0; row < rows; ++row)
        EXPECT_EQ(std::isnan(y[row * kOutputs]), row + 6 >= rows) << row;
}

TEST_P(KernelsTest, ExpAndNoiseHaveTheBitsOfTheirSpecification) {
    std::vector<float> x = random_floats(10'000, 3, 40.0F);
    for (const float odd : {-87.0F, -87.00001F, 88.0F, 1000.0F, -1000.0F, 0.0F, -0.0F, 1e-42F,
                            HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()})
        x.push_back(odd);
    std::vector<float> y = x;
    static_cast<void>(exp_in_place(y, 0.0F));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = reference::exp(x[i]);
    EXPECT_EQ(bits(y), bits(x));

    const NoiseKey key{.seed = 0x123456789ABCDEFULL, .stream = 3, .position = 77};
    std::vector<float> noise(1003, 0.0F);
    add_gumbel_noise(key, noise);
    for (std::size_t t = 0; t < noise.size(); ++t)
        ASSERT_EQ(noise[t], reference::gumbel_noise(key, static_cast<std::uint32_t>(t))) << t;
}

TEST_P(KernelsTest, RowOperationsHaveTheBitsOfTheirSpecification) {
    for (const std::size_t size : {1U, 8U, 15U, 16U, 17U, 64U, 100U, 256U, 1000U}) {
        const auto x = random_floats(size, 1);
        const auto w = random_floats(size, 2);
        std::vector<float> y(size);
        rms_norm(x, w, 1e-6F, y);
        EXPECT_EQ(bits(y), bits(reference::rms_norm(x, w, 1e-6F))) << size;
        silu_multiply(x, w, y);
        EXPECT_EQ(bits(y), bits(reference::silu_multiply(x, w))) << size;
        y = x;
        const float sum = exp_in_place(y, 0.5F);
        EXPECT_EQ(sum, reference::lane_sum(y)) << size;
    }
}

void expect_attention_as_specified(const MlaShape& shape) {
    constexpr std::size_t kPositions = 600;
    const std::size_t pages = (kPositions + 63) / 64;
    const auto values = random_floats(kPositions * shape.width(), 11);
    const auto query = random_floats(shape.heads * shape.width(), 12);
    std::vector<std::uint32_t> order(pages);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::reverse(order);
    std::vector<float> scratch(shape.scratch());
    for (const std::size_t positions : {1U, 2U, 15U, 16U, 63U, 64U, 65U, 255U, 256U, 257U, 600U}) {
        // What lies beyond the positions must not matter, whatever it is.
        FloatBuffer cache(pages * 64 * shape.width());
        std::fill_n(cache.data(), cache.size(), std::numeric_limits<float>::quiet_NaN());
        for (std::size_t i = 0; i < positions; ++i)
            std::copy_n(values.data() + i * shape.width(), shape.width(),
                        cache.data() + (order[i / 64] * 64 + i % 64) * shape.width());
        const PagedRows paged{.base = cache.data(), .stride = 64 * shape.width(), .index = order};
        std::vector<float> out(shape.heads * shape.latent);
        mla_attention(shape, query.data(), paged, positions, out.data(), scratch);
        const auto expected = reference::mla_attention(
            shape, query, std::span(values).first(positions * shape.width()));
        ASSERT_EQ(bits(out), bits(expected)) << shape.heads << " heads, " << positions;
    }
}

TEST_P(KernelsTest, AttentionHasTheBitsOfItsSpecificationAtEveryLength) {
    expect_attention_as_specified(
        {.heads = 3, .latent = 32, .rope = 16, .page_positions = 64, .scale = 0.3F});
    expect_attention_as_specified(
        {.heads = 5, .latent = 80, .rope = 32, .page_positions = 64, .scale = 0.2F});
    expect_attention_as_specified(
        {.heads = 70, .latent = 16, .rope = 16, .page_positions = 64, .scale = 0.2F});
}

TEST_P(KernelsTest, NotANumberIsNeverLost) {
    std::vector<float> x = random_floats(100, 4);
    x[57] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(max_or_nan(x)));
}

// Inverse controls: inputs on which a broken rule shows, so that the comparisons above mean something.
TEST(KernelControlTest, AChainCutInTwoHasOtherBits) {
    constexpr std::size_t kInputs = 64;
    const auto weights = random_floats(kInputs, 5);
    const auto x = random_floats(kInputs, 7);
    const auto whole =
        reference::matmul(WeightType::kF32, 1, kInputs, encode(WeightType::kF32, weights), x);
    float halves[2] = {0.0F, 0.0F};
    float unfused = 0.0F;
    for (std::size_t k = 0; k < kInputs; ++k) {
        halves[k % 2] = std::fma(x[k], weights[k], halves[k % 2]);
        unfused += x[k] * weights[k];
    }
    EXPECT_NE(whole[0], halves[0] + halves[1]);
    EXPECT_NE(whole[0], unfused);
}

TEST(KernelControlTest, ASumInAnotherOrderHasOtherBits) {
    auto x = random_floats(1000, 9);
    const float sum = reference::lane_sum(x);
    std::ranges::rotate(x, x.begin() + 1);
    EXPECT_NE(sum, reference::lane_sum(x));
}

TEST(KernelAccuracyTest, ExpLogAndSinCosAreCloseToTheTruth) {
    for (float x = -86.9F; x < 87.0F; x += 0.0137F)
        ASSERT_NEAR(reference::exp(x) / std::exp(static_cast<double>(x)), 1.0, 2e-7) << x;
    for (float x = 1e-7F; x < 100.0F; x *= 1.001F)
        ASSERT_NEAR(reference::log(x), std::log(static_cast<double>(x)),
                    2e-7 * std::max(1e-3, std::fabs(std::log(static_cast<double>(x)))))
            << x;
}

// The average of a standard Gumbel variable is Euler's constant, its variance π²/6.
TEST(KernelAccuracyTest, NoiseIsDistributedAsGumbel) {
    std::vector<float> noise(1 << 18, 0.0F);
    add_gumbel_noise({.seed = 42, .stream = 0, .position = 9}, noise);
    double sum = 0;
    double squares = 0;
    for (const float value : noise) {
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    const double mean = sum / static_cast<double>(noise.size());
    EXPECT_NEAR(mean, 0.5772, 0.02);
    EXPECT_NEAR(squares / static_cast<double>(noise.size()) - mean * mean, 1.6449, 0.05);
}

TEST(HalfTest, EveryHalfSurvivesTheRoundTrip) {
    for (std::uint32_t half = 0; half < 0x10000; ++half) {
        const float value = half_to_float(static_cast<std::uint16_t>(half));
        if (std::isnan(value)) continue;
        ASSERT_EQ(float_to_half(value), half);
    }
}

TEST(HalfTest, RoundingIsToNearestEven) {
    EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3C00);      // tie to even: down
    EXPECT_EQ(float_to_half(1.0F + 3 * 0x1p-11F), 0x3C02);  // tie to even: up
    EXPECT_EQ(float_to_half(1.0F + 0x1p-11F + 0x1p-20F), 0x3C01);
    EXPECT_EQ(float_to_half(65519.99F), 0x7BFF);
    EXPECT_EQ(float_to_half(65520.0F), 0x7C00);
    EXPECT_EQ(float_to_half(0x1p-25F), 0x0000);
    EXPECT_EQ(float_to_half(0x1.8p-24F), 0x0002);
}

}  // namespace
}  // namespace sluice::tensor
