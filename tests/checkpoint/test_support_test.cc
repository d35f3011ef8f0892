// The helpers other folders' tests stand on.

#include <cmath>

#include "checkpoint/gguf_file.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/half.h"
#include "tests/support/tiny_model.h"

namespace sluice::test {
namespace {

using checkpoint::DataType;
using checkpoint::GgufFile;
using checkpoint::TensorView;

TEST(TestSupportTest, EveryHalfSurvivesTheWayThroughFloat) {
    for (std::uint32_t half = 0; half < 0x10000; ++half) {
        const float value = half_to_float(static_cast<std::uint16_t>(half));
        if (std::isnan(value)) continue;
        EXPECT_EQ(float_to_half(value), half);
    }
}

TEST(TestSupportTest, HalvesRoundToNearestEven) {
    EXPECT_EQ(half_to_float(float_to_half(1.0F + 0x1p-11F)), 1.0F);
    EXPECT_EQ(half_to_float(float_to_half(1.0F + 0x3p-11F)), 1.0F + 0x1p-9F);
    EXPECT_EQ(half_to_float(float_to_half(65519.0F)), 65504.0F);
    EXPECT_TRUE(std::isinf(half_to_float(float_to_half(65520.0F))));
    EXPECT_EQ(float_to_half(0x1p-25F), 0);
    EXPECT_EQ(float_to_half(0x3p-25F), 2);
}

TEST(TestSupportTest, AWidenedFileHasTheSameModelInF32) {
    const Result<GgufFile> half = GgufFile::open(krill_file("krill-f16.gguf"));
    ASSERT_TRUE(half.has_value());
    const std::vector<std::byte> bytes = widened_to_f32(*half);
    const Result<GgufFile> wide = GgufFile::parse(bytes);
    ASSERT_TRUE(wide.has_value()) << wide.error().to_string();
    EXPECT_EQ(*checkpoint::read_hyper_parameters(*wide), *checkpoint::read_hyper_parameters(*half));
    ASSERT_EQ(wide->tensors().size(), half->tensors().size());
    for (const TensorView& tensor : wide->tensors()) {
        EXPECT_EQ(tensor.type, DataType::kF32);
        EXPECT_EQ(tensor.shape, half->find_tensor(tensor.name)->shape);
        EXPECT_EQ(widened(tensor), widened(*half->find_tensor(tensor.name)));
    }
}

TEST(TestSupportTest, ARandomModelIsTheSameEachTimeAndOfItsType) {
    auto model = tiny_hyper_parameters();
    model.mtp_layers = 1;
    for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kQ8_0}) {
        const std::vector<std::byte> bytes = random_model(model, type, 7);
        EXPECT_EQ(bytes, random_model(model, type, 7));
        EXPECT_NE(bytes, random_model(model, type, 8));
        const Result<GgufFile> file = GgufFile::parse(bytes);
        ASSERT_TRUE(file.has_value()) << file.error().to_string();
        EXPECT_EQ(checkpoint::read_hyper_parameters(*file), model);
        EXPECT_EQ(file->find_tensor("blk.2.nextn.eh_proj.weight")->type, type);
        EXPECT_EQ(file->find_tensor("blk.1.ffn_gate_inp.weight")->type, DataType::kF32);
    }
}

TEST(TestSupportTest, QuantisedWeightsAreCloseToTheWideOnes) {
    const auto model = tiny_hyper_parameters();
    const auto wide_bytes = random_model(model, DataType::kF32, 3);
    const auto q8_bytes = random_model(model, DataType::kQ8_0, 3);
    const auto wide = *GgufFile::parse(wide_bytes);
    const auto q8 = *GgufFile::parse(q8_bytes);
    const std::vector<float> a = widened(*wide.find_tensor("output.weight"));
    const std::vector<float> b = widened(*q8.find_tensor("output.weight"));
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.002);
}

}  // namespace
}  // namespace sluice::test
