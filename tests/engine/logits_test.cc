// The forward pass against PyTorch's f32 logits of the same weights (models/krill/README.md).

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "base/hash.h"
#include "checkpoint/gguf_types.h"
#include "engine/forward.h"
#include "tensor/target.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

struct Difference {
    double nmse = 0;     ///< Σ (ours − theirs)² / Σ theirs²
    double largest = 0;  ///< Over all positions and tokens.
    std::size_t argmax_equal = 0;
    std::size_t positions = 0;
};

Difference compare(std::span<const float> ours, std::span<const float> theirs,
                   std::size_t vocabulary) {
    Difference difference;
    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
        const double delta = static_cast<double>(ours[i]) - theirs[i];
        error += delta * delta;
        power += static_cast<double>(theirs[i]) * theirs[i];
        difference.largest = std::max(difference.largest, std::fabs(delta));
    }
    difference.nmse = error / power;
    difference.positions = theirs.size() / vocabulary;
    for (std::size_t row = 0; row < difference.positions; ++row) {
        const auto at = [&](std::span<const float> logits) {
            const auto part = logits.subspan(row * vocabulary, vocabulary);
            return std::ranges::max_element(part) - part.begin();
        };
        difference.argmax_equal += at(ours) == at(theirs) ? 1 : 0;
    }
    return difference;
}

std::shared_ptr<const Model> load(const std::filesystem::path& file) {
    const auto model = Model::load(file);
    EXPECT_TRUE(model.has_value()) << model.error().to_string();
    return *model;
}

Difference compare_file(const std::filesystem::path& file, const std::string& name) {
    const auto model = load(file);
    const krill::Reference reference = krill::reference(name);
    const std::vector<float> logits = krill::all_logits(model, reference.all_ids(), 512);
    return compare(logits, reference.logits, model->parameters().vocabulary);
}

Difference compare_mtp(const std::shared_ptr<const Model>& model, const std::string& name,
                       std::size_t chunk) {
    const krill::Reference reference = krill::reference(name);
    const std::vector<float> logits = krill::all_mtp_logits(model, reference.all_ids(), chunk);
    return compare(logits, reference.mtp_logits, model->parameters().vocabulary);
}

TEST(LogitsTest, F32WeightsGiveTheReferencesLogitsAtEveryPosition) {
    const auto file = checkpoint::GgufFile::open(test::krill_file("krill-f16.gguf"));
    ASSERT_TRUE(file.has_value());
    const auto path = test::write_temporary("krill-f32.gguf", test::widened_to_f32(*file));
    for (const std::string name : {"story", "turns"}) {
        const Difference difference = compare_file(path, name);
        RecordProperty("largest_" + name, std::to_string(difference.largest));
        EXPECT_LE(difference.largest, 1e-4) << name;
    }
}

TEST(LogitsTest, F32WeightsGiveTheMtpHeadsReferenceLogitsAtEveryPosition) {
    const auto file = checkpoint::GgufFile::open(test::krill_file("krill-f16.gguf"));
    ASSERT_TRUE(file.has_value());
    const auto model =
        load(test::write_temporary("krill-mtp-f32.gguf", test::widened_to_f32(*file)));
    ASSERT_NE(model->mtp(), nullptr);
    for (const std::string name : {"story", "turns"}) {
        for (const std::size_t chunk : {1U, 33U, 512U}) {
            const Difference difference = compare_mtp(model, name, chunk);
            EXPECT_LE(difference.largest, 1e-4) << name << " in chunks of " << chunk;
        }
    }
}

TEST(LogitsTest, TheMtpHeadInF16AndQ8StaysClose) {
    for (const std::string name : {"story", "turns"}) {
        EXPECT_LE(compare_mtp(krill::model("krill-f16.gguf"), name, 512).nmse, 1e-6) << name;
        EXPECT_LE(compare_mtp(krill::model("krill-q8_0.gguf"), name, 512).nmse, 1e-3) << name;
    }
}

TEST(LogitsTest, F16WeightsStayWithinAMillionth) {
    for (const std::string name : {"story", "turns"}) {
        const Difference difference = compare_file(test::krill_file("krill-f16.gguf"), name);
        EXPECT_LE(difference.nmse, 1e-6) << name;
        EXPECT_EQ(difference.argmax_equal, difference.positions) << name;
    }
}

TEST(LogitsTest, Q8WeightsStayWithinAThousandth) {
    for (const std::string name : {"story", "turns"}) {
        const Difference difference = compare_file(test::krill_file("krill-q8_0.gguf"), name);
        EXPECT_LE(difference.nmse, 1e-3) << name;
    }
}

/// Krill with its f16 matrices cut to bf16.
std::vector<std::byte> krill_in_bf16(const checkpoint::GgufFile& file) {
    test::GgufBuilder builder;
    for (const checkpoint::MetadataEntry& entry : file.metadata())
        builder.add_raw(entry.key, entry.raw);
    for (const checkpoint::TensorView& tensor : file.tensors()) {
        if (tensor.type != checkpoint::DataType::kF16) {
            builder.add_tensor(tensor.name, tensor.raw_type, tensor.shape,
                               {tensor.data.begin(), tensor.data.end()});
            continue;
        }
        test::ByteWriter writer;
        for (const float value : test::widened(tensor))
            writer.put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
        builder.add_tensor(tensor.name, checkpoint::kTensorBf16, tensor.shape, writer.bytes());
    }
    return builder.build();
}

// Both are the same chain of multiply-adds over the same values, however they are stored.
TEST(LogitsTest, Bf16WeightsGiveTheBitsOfTheirValuesInF32) {
    const auto file = checkpoint::GgufFile::open(test::krill_file("krill-f16.gguf"));
    ASSERT_TRUE(file.has_value());
    const auto bf16_path = test::write_temporary("krill-bf16.gguf", krill_in_bf16(*file));
    const auto bf16_file = checkpoint::GgufFile::open(bf16_path);
    ASSERT_TRUE(bf16_file.has_value()) << bf16_file.error().to_string();
    const auto f32_path =
        test::write_temporary("krill-bf16-f32.gguf", test::widened_to_f32(*bf16_file));
    const auto bf16 = Model::load(bf16_path);
    const auto f32 = Model::load(f32_path);
    ASSERT_TRUE(bf16.has_value()) << bf16.error().to_string();
    ASSERT_TRUE(f32.has_value()) << f32.error().to_string();
    const auto ids = krill::reference("turns").all_ids();
    EXPECT_EQ(krill::all_logits(*bf16, ids, 512), krill::all_logits(*f32, ids, 512));
}

std::string logits_digest(const std::string& file) {
    Sha256 hash;
    for (const std::string name : {"story", "turns"}) {
        const auto ids = krill::reference(name).all_ids();
        const std::vector<float> logits = krill::all_logits(krill::model(file), ids, 33, 2);
        hash.update(std::as_bytes(std::span(logits)));
    }
    return to_hex(hash.finish());
}

// One digest for every build and every target: release, debug, sanitizers, AVX2, AVX-512, VNNI. A
// change of these lines is a change of the arithmetic, and needs a new tensor::kArithmeticVersion.
TEST(LogitsDigestTest, IsTheCommittedOneOnEveryTarget) {
    for (const tensor::Target target : tensor::available_targets()) {
        ASSERT_TRUE(tensor::use_target(target).has_value());
        EXPECT_EQ(logits_digest("krill-f16.gguf"),
                  "9357f6405cea66d6a6df3ad45a162857a3de9f79bfa95b563d7175f2901ec3c6")
            << to_string(target);
        EXPECT_EQ(logits_digest("krill-q8_0.gguf"),
                  "538a5493798a451f51a243fc3502f52c442db4d176c09a418ae0434d86d52109")
            << to_string(target);
    }
    ASSERT_TRUE(tensor::use_target(tensor::available_targets().back()).has_value());
}

}  // namespace
}  // namespace sluice::engine
