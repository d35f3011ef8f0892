// Files made to break the reader. Each must be an Error, or be read without touching a byte outside
// the file; the sanitizer builds see to the second half.

#include <bit>
#include <cstring>
#include <random>

#include "checkpoint/fingerprint.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/hyper_parameters.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/tiny_model.h"

namespace sluice::checkpoint {
namespace {

using test::ByteWriter;
using test::GgufBuilder;

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

/// The error that `bytes` cause. They are copied to a heap block of their exact size, so that a
/// sanitizer sees one byte too many.
Error error_of(std::span<const std::byte> bytes) {
    const std::vector<std::byte> exact(bytes.begin(), bytes.end());
    const Result<GgufFile> file = GgufFile::parse(exact);
    EXPECT_FALSE(file.has_value());
    return file ? Error::invalid("none") : file.error();
}

Error error_of(const GgufBuilder& builder) { return error_of(builder.build()); }

void expect_text(const Error& error, std::string_view text) {
    EXPECT_NE(error.to_string().find(text), std::string::npos) << error.to_string();
}

/// Touches everything that a caller may touch.
void read_all(const GgufFile& file) {
    for (const MetadataEntry& entry : file.metadata()) {
        (void)file.find_uint(entry.key);
        (void)file.find_int(entry.key);
        (void)file.find_float(entry.key);
        (void)file.find_bool(entry.key);
        (void)file.find_string(entry.key);
        (void)file.find_strings(entry.key);
        (void)file.find_ints(entry.key);
        (void)file.find_floats(entry.key);
    }
    (void)fingerprint(file);
    (void)read_hyper_parameters(file);
}

std::vector<std::byte> small_file() {
    const std::vector<std::string> strings{"one", "two"};
    const std::vector<float> weights(8, 1.0F);
    return GgufBuilder()
        .add_string("general.architecture", "deepseek2")
        .add_strings("strings", strings)
        .add_bool("flag", true)
        .add_f64("number", 1.5)
        .add_f32_tensor("first", {4}, std::span(weights).first(4))
        .add_f32_tensor("second", {2, 4}, weights)
        .build();
}

TEST(GgufHostileTest, AFileCutAnywhereIsAnError) {
    const std::vector<std::byte> whole = small_file();
    ASSERT_TRUE(GgufFile::parse(whole).has_value());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const Error error = error_of(std::span(whole).first(size));
        EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << size;
        EXPECT_FALSE(error.place().empty()) << size;
    }
}

TEST(GgufHostileTest, FlippedBitsNeverCrash) {
    const std::vector<std::byte> whole = small_file();
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        std::vector<std::byte> flipped = whole;
        flipped[bit / 8] ^= std::byte{1} << (bit % 8);
        if (const Result<GgufFile> file = GgufFile::parse(flipped)) read_all(*file);
    }
}

TEST(GgufHostileTest, RandomDamageToAModelNeverCrashes) {
    const auto whole =
        test::with_metadata(test::tiny_hyper_parameters()).add_f32("x", 1.0F).build();
    std::mt19937_64 random(1);
    constexpr std::array<std::uint8_t, 6> kNasty{0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF};
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> damaged = whole;
        for (std::uint64_t i = 0; i <= random() % 4; ++i) {
            damaged[random() % damaged.size()] = std::byte{kNasty[random() % kNasty.size()]};
        }
        if (const Result<GgufFile> file = GgufFile::parse(damaged)) read_all(*file);
    }
}

TEST(GgufHostileTest, AnotherMagicVersionOrByteOrderIsRefused) {
    std::vector<std::byte> bytes = small_file();
    bytes[0] = std::byte{'X'};
    expect_text(error_of(bytes), "not a GGUF file");
    for (const std::uint32_t version : {0U, 1U, 4U}) {
        const Error error = error_of(GgufBuilder().version(version));
        EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
        expect_text(error, "version " + std::to_string(version));
    }
    expect_text(error_of(GgufBuilder().version(0x03000000)), "big-endian");
}

TEST(GgufHostileTest, CountsBeyondLimitsOrBytesAreRefusedBeforeMemoryIsSetAside) {
    expect_text(error_of(GgufBuilder().claim_values(kHuge)), "9223372036854775808");
    expect_text(error_of(GgufBuilder().claim_tensors(kHuge)), "9223372036854775808");
    expect_text(error_of(GgufBuilder().claim_values(60'000)), "only 0 bytes left");
    expect_text(error_of(GgufBuilder().claim_tensors(1'000'000)), "only 0 bytes left");
}

TEST(GgufHostileTest, LengthsPastTheEndAreRefused) {
    const auto string_type = static_cast<std::uint32_t>(ValueType::kString);
    for (const std::uint64_t length : {std::uint64_t{1}, kHuge, ~std::uint64_t{0}}) {
        expect_text(error_of(GgufBuilder().add_raw(
                        "name", ByteWriter().put(string_type).put(length).bytes())),
                    "metadata name");
    }
    // A key longer than the file.
    const auto key = ByteWriter()
                         .put(std::uint32_t{0x46554747})
                         .put(std::uint32_t{3})
                         .put(std::uint64_t{0})
                         .put(std::uint64_t{1})
                         .put(kHuge)
                         .pad(64);
    expect_text(error_of(key.bytes()), "metadata entry 0");
}

TEST(GgufHostileTest, ArraysThatLieAreRefused) {
    const auto array = [](std::uint32_t element, std::uint64_t count) {
        return ByteWriter()
            .put(static_cast<std::uint32_t>(ValueType::kArray))
            .put(element)
            .put(count)
            .bytes();
    };
    const auto number = [](ValueType type) { return static_cast<std::uint32_t>(type); };
    const std::uint64_t wraps = ~std::uint64_t{0} / 8 + 1;  // Times eight is zero.
    expect_text(error_of(GgufBuilder().add_raw("a", array(number(ValueType::kU64), wraps))),
                "the array claims");
    expect_text(error_of(GgufBuilder().add_raw("a", array(number(ValueType::kU8), 1000))),
                "metadata a");
    expect_text(error_of(GgufBuilder().add_raw("a", array(number(ValueType::kString), 1000))),
                "metadata a");
    expect_text(error_of(GgufBuilder().add_raw("a", array(13, 0))), "13 is not a type");
    const Error nested = error_of(GgufBuilder().add_raw("a", array(number(ValueType::kArray), 1)));
    EXPECT_EQ(nested.code(), ErrorCode::kUnsupported);
    expect_text(nested, "arrays of arrays");
}

TEST(GgufHostileTest, ValuesThatAreNotTheirTypeAreRefused) {
    expect_text(error_of(GgufBuilder().add_raw("v", ByteWriter().put(77U).put(1U).bytes())),
                "77 is not a type");
    const auto bool_type = static_cast<std::uint32_t>(ValueType::kBool);
    expect_text(error_of(GgufBuilder().add_raw(
                    "b", ByteWriter().put(bool_type).put(std::uint8_t{2}).bytes())),
                "neither 0 nor 1");
}

TEST(GgufHostileTest, ANameThatOccursTwiceIsRefused) {
    expect_text(error_of(GgufBuilder().add_u32("k", 1).add_u32("x", 2).add_u32("k", 1)),
                "metadata k: this name occurs twice");
    const std::vector<float> weights{1.0F};
    expect_text(
        error_of(GgufBuilder().add_f32_tensor("t", {1}, weights).add_f32_tensor("t", {1}, weights)),
        "tensor t: this name occurs twice");
}

TEST(GgufHostileTest, AnAlignmentThatIsNoneIsRefused) {
    for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 0x80000000U}) {
        expect_text(error_of(GgufBuilder().alignment(alignment)), "general.alignment");
    }
    expect_text(error_of(GgufBuilder().add_string("general.alignment", "32")), "general.alignment");
}

TEST(GgufHostileTest, ShapesWithoutElementsOrBeyondCountingAreRefused) {
    const std::vector<std::byte> data(64);
    const auto shaped = [&data](std::vector<std::uint64_t> shape) {
        return GgufBuilder().add_tensor("t", kTensorF32, std::move(shape), data);
    };
    expect_text(error_of(shaped({})), "0 dimensions");
    expect_text(error_of(shaped({1, 1, 1, 1, 1})), "5 dimensions");
    expect_text(error_of(shaped({4, 0})), "a dimension is zero");
    expect_text(error_of(shaped({0, kHuge, 4})), "a dimension is zero");
    expect_text(error_of(shaped({kHuge, 2})), "overflows");
    expect_text(error_of(shaped({std::uint64_t{1} << 32, std::uint64_t{1} << 32})), "overflows");
    expect_text(error_of(shaped({std::uint64_t{1} << 62})), "size in bytes overflows");
    expect_text(error_of(shaped({std::uint64_t{1} << 60})), "past the end");
    expect_text(error_of(GgufBuilder().add_tensor("t", kTensorQ8_0, {48}, data)),
                "needs a multiple of 32");
}

TEST(GgufHostileTest, TensorDataOutsideTheFileIsRefused) {
    const std::vector<float> weights(4, 1.0F);
    const auto at = [&weights](std::uint64_t offset) {
        return GgufBuilder().add_f32_tensor("t", {4}, weights).claim_offset(offset);
    };
    expect_text(error_of(at(32)), "past the end");
    expect_text(error_of(at(kHuge)), "past the end");
    expect_text(error_of(at(~std::uint64_t{0} - 31)), "past the end");
    expect_text(error_of(at(8)), "not a multiple of the alignment");
}

TEST(GgufHostileTest, AFileCutInThePaddingBeforeDataOfUnknownSizeIsRefused) {
    std::vector<std::byte> bytes = GgufBuilder().add_tensor("t", 250, {4}, {}).build();
    EXPECT_TRUE(GgufFile::parse(bytes).has_value());
    bytes.pop_back();
    expect_text(error_of(bytes), "past the end");
}

TEST(GgufHostileTest, OverlappingTensorsAreRefused) {
    const std::vector<float> weights(16, 1.0F);
    expect_text(error_of(GgufBuilder()
                             .add_f32_tensor("a", {16}, weights)
                             .add_f32_tensor("b", {16}, weights)
                             .claim_offset(32)),
                "overlaps");
    expect_text(error_of(GgufBuilder()
                             .add_f32_tensor("a", {16}, weights)
                             .add_f32_tensor("b", {16}, weights)
                             .claim_offset(0)),
                "overlaps");
}

TEST(GgufHostileTest, NamesInErrorsArePrintable) {
    const Error error =
        error_of(GgufBuilder().add_raw("a\x1b[31m\n", ByteWriter().put(77U).bytes()));
    expect_text(error, "metadata a\\x1b[31m\\x0a");
}

}  // namespace
}  // namespace sluice::checkpoint
