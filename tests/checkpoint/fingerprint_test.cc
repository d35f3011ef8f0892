#include "checkpoint/fingerprint.h"

#include <set>

#include "tests/support/gguf_builder.h"
#include "tests/support/tiny_model.h"

namespace sluice::checkpoint {
namespace {

std::string fingerprint_of(std::span<const std::byte> bytes) {
    const Result<GgufFile> file = GgufFile::parse(bytes);
    EXPECT_TRUE(file.has_value()) << file.error().to_string();
    return fingerprint(*file);
}

TEST(FingerprintTest, EqualBytesHaveEqualFingerprints) {
    const auto path = test::krill_file("krill-q8_0.gguf");
    const Result<GgufFile> file = GgufFile::open(path);
    ASSERT_TRUE(file.has_value());
    EXPECT_EQ(fingerprint(*file), fingerprint_of(file->bytes()));
    EXPECT_EQ(fingerprint(*file).size(), 64U);
    EXPECT_EQ(fingerprint(*file).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(FingerprintTest, EveryWeightAndEveryKeyCounts) {
    const auto model = test::tiny_hyper_parameters();
    const auto bytes = test::random_model(model, DataType::kF16, 1);
    std::set<std::string> seen{fingerprint_of(bytes)};

    const Result<GgufFile> file = GgufFile::parse(bytes);
    ASSERT_TRUE(file.has_value());
    for (const TensorView& tensor : file->tensors()) {
        std::vector<std::byte> changed = bytes;
        const auto last = static_cast<std::size_t>(&tensor.data.back() - bytes.data());
        changed[last] ^= std::byte{1};
        EXPECT_TRUE(seen.insert(fingerprint_of(changed)).second) << tensor.name;
    }
    auto renamed = model;
    renamed.name = "Other";
    EXPECT_TRUE(seen.insert(fingerprint_of(test::random_model(renamed, DataType::kF16, 1))).second);
}

TEST(FingerprintTest, WeightsThatChangePlacesAreOtherWeights) {
    const std::vector<float> ones(8, 1.0F);
    const std::vector<float> twos(8, 2.0F);
    const auto a =
        test::GgufBuilder().add_f32_tensor("a", {8}, ones).add_f32_tensor("b", {8}, twos);
    const auto b =
        test::GgufBuilder().add_f32_tensor("a", {8}, twos).add_f32_tensor("b", {8}, ones);
    EXPECT_NE(fingerprint_of(a.build()), fingerprint_of(b.build()));
}

TEST(FingerprintTest, DataOfAnUnknownTypeCountsToo) {
    const auto with = [](std::uint8_t byte) {
        return test::GgufBuilder().add_tensor("new", 250, {4}, {std::byte{byte}}).build();
    };
    EXPECT_NE(fingerprint_of(with(1)), fingerprint_of(with(2)));
}

}  // namespace
}  // namespace sluice::checkpoint
