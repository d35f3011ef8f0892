#include "checkpoint/gguf_file.h"

#include <filesystem>
#include <utility>

#include "checkpoint/gguf_types.h"
#include "tests/support/gguf_builder.h"

namespace sluice::checkpoint {
namespace {

using test::GgufBuilder;

/// The bytes must outlive the views, so both travel together.
struct Parsed {
    std::vector<std::byte> bytes;
    GgufFile file;
};

Parsed parse(const GgufBuilder& builder) {
    Parsed parsed{.bytes = builder.build(), .file = {}};
    Result<GgufFile> file = GgufFile::parse(parsed.bytes);
    EXPECT_TRUE(file.has_value()) << file.error().to_string();
    if (file) parsed.file = *std::move(file);
    return parsed;
}

TEST(GgufFileTest, ScalarsAreFoundByKeyAndKind) {
    const Parsed parsed = parse(GgufBuilder()
                                    .add_u32("u32", 7)
                                    .add_u64("u64", ~std::uint64_t{0})
                                    .add_i32("i32", -7)
                                    .add_f32("f32", 0.5F)
                                    .add_f64("f64", 0.1)
                                    .add_bool("bool", true)
                                    .add_string("string", "text"));
    const GgufFile& file = parsed.file;
    EXPECT_EQ(file.find_uint("u32"), 7U);
    EXPECT_EQ(file.find_int("u32"), 7);
    EXPECT_EQ(file.find_uint("u64"), ~std::uint64_t{0});
    EXPECT_EQ(file.find_int("u64"), std::nullopt);
    EXPECT_EQ(file.find_int("i32"), -7);
    EXPECT_EQ(file.find_uint("i32"), std::nullopt);
    EXPECT_EQ(file.find_float("f32"), 0.5);
    EXPECT_EQ(file.find_float("f64"), 0.1);
    EXPECT_EQ(file.find_bool("bool"), true);
    EXPECT_EQ(file.find_string("string"), "text");
    EXPECT_TRUE(file.contains("u32"));
}

TEST(GgufFileTest, AnAbsentKeyOrAnotherKindAnswersNothing) {
    const Parsed parsed = parse(GgufBuilder().add_u32("u32", 7).add_string("string", "text"));
    const GgufFile& file = parsed.file;
    EXPECT_FALSE(file.contains("absent"));
    EXPECT_EQ(file.find_uint("absent"), std::nullopt);
    EXPECT_EQ(file.find_uint("string"), std::nullopt);
    EXPECT_EQ(file.find_float("u32"), std::nullopt);
    EXPECT_EQ(file.find_bool("u32"), std::nullopt);
    EXPECT_EQ(file.find_string("u32"), std::nullopt);
    EXPECT_EQ(file.find_strings("string"), std::nullopt);
    EXPECT_EQ(file.find_ints("u32"), std::nullopt);
    EXPECT_EQ(file.find_floats("u32"), std::nullopt);
    EXPECT_EQ(file.find_tensor("absent"), nullptr);
}

TEST(GgufFileTest, ArraysKeepTheirOrder) {
    const std::vector<std::string> strings{"a", "", "long one"};
    const std::vector<std::int32_t> ints{3, -1, 2};
    const std::vector<float> floats{0.5F, -0.0F};
    const Parsed parsed = parse(GgufBuilder()
                                    .add_strings("strings", strings)
                                    .add_i32s("ints", ints)
                                    .add_f32s("floats", floats));
    const GgufFile& file = parsed.file;
    EXPECT_EQ(file.find_strings("strings"), (std::vector<std::string_view>{"a", "", "long one"}));
    EXPECT_EQ(file.find_ints("ints"), (std::vector<std::int64_t>{3, -1, 2}));
    EXPECT_EQ(file.find_floats("floats"), floats);
    EXPECT_EQ(file.find_ints("floats"), std::nullopt);
    EXPECT_EQ(file.find_ints("strings"), std::nullopt);
}

TEST(GgufFileTest, TensorsLieAtTheAlignmentAskedFor) {
    const std::vector<float> first{1, 2, 3};
    const std::vector<float> second{4, 5};
    for (const std::uint32_t alignment : {8U, 32U, 4096U}) {
        const Parsed parsed = parse(GgufBuilder()
                                        .alignment(alignment)
                                        .add_f32_tensor("b", {3}, first)
                                        .add_f32_tensor("a", {1, 2}, second));
        EXPECT_EQ(parsed.file.alignment(), alignment);
        ASSERT_EQ(parsed.file.tensors().size(), 2U);
        EXPECT_EQ(parsed.file.tensors()[0].name, "b");
        const TensorView* const a = parsed.file.find_tensor("a");
        ASSERT_NE(a, nullptr);
        EXPECT_EQ(a->type, DataType::kF32);
        EXPECT_EQ(a->shape, (std::vector<std::uint64_t>{1, 2}));
        EXPECT_EQ(a->elements(), 2U);
        EXPECT_EQ((a->data.data() - parsed.bytes.data()) % alignment, 0);
        EXPECT_EQ(test::widened(*a), second);
    }
}

TEST(GgufFileTest, SizesFollowTheTypesBlockLayout) {
    const Parsed parsed =
        parse(GgufBuilder()
                  .add_tensor("f16", kTensorF16, {3}, std::vector<std::byte>(6))
                  .add_tensor("bf16", kTensorBf16, {3}, std::vector<std::byte>(6))
                  .add_tensor("q8_0", kTensorQ8_0, {64, 2}, std::vector<std::byte>(4 * 34))
                  .add_tensor("q4_K", 12, {256}, std::vector<std::byte>(144)));
    EXPECT_EQ(parsed.file.find_tensor("f16")->type, DataType::kF16);
    EXPECT_EQ(parsed.file.find_tensor("bf16")->type, DataType::kBf16);
    EXPECT_EQ(parsed.file.find_tensor("q8_0")->type, DataType::kQ8_0);
    EXPECT_EQ(parsed.file.find_tensor("q8_0")->data.size(), 4U * 34);
    EXPECT_EQ(parsed.file.find_tensor("q4_K")->type, DataType::kOther);
    EXPECT_EQ(parsed.file.find_tensor("q4_K")->data.size(), 144U);
}

TEST(GgufFileTest, AnUnknownTensorTypeIsKeptWithoutDataAndHasAName) {
    const Parsed parsed =
        parse(GgufBuilder().add_tensor("new", 250, {7}, std::vector<std::byte>(3)));
    EXPECT_EQ(parsed.file.find_tensor("new")->type, DataType::kOther);
    EXPECT_TRUE(parsed.file.find_tensor("new")->data.empty());
    EXPECT_EQ(tensor_type_name(250), "type 250");
    EXPECT_EQ(tensor_type_name(12), "q4_K");
}

TEST(GgufFileTest, VersionTwoIsReadLikeThree) {
    EXPECT_EQ(parse(GgufBuilder().version(2).add_u32("k", 1)).file.version(), 2U);
}

TEST(GgufFileTest, AFileWithoutEntriesIsValid) {
    const Parsed parsed = parse(GgufBuilder());
    EXPECT_TRUE(parsed.file.tensors().empty());
    EXPECT_TRUE(parsed.file.metadata().empty());
    EXPECT_EQ(parsed.file.header().size(), 24U);
}

TEST(GgufFileTest, MetadataIsDescribedForPeople) {
    const std::vector<std::int32_t> numbers{1, 2, 3, 4, 5};
    const Parsed parsed = parse(GgufBuilder()
                                    .add_string("s", "line\nbreak \x1b[2J \xff")
                                    .add_i32s("a", numbers)
                                    .add_f32("f", 1e-6F)
                                    .add_string("long", std::string(10'000, 'x')));
    const std::vector<MetadataEntry> entries = parsed.file.metadata();
    ASSERT_EQ(entries.size(), 4U);
    EXPECT_EQ(entries[0].type, "string");
    EXPECT_EQ(entries[0].text, "line\\x0abreak \\x1b[2J \\xff");
    EXPECT_EQ(entries[1].type, "array of i32");
    EXPECT_EQ(entries[1].text, "5 entries: 1, 2, 3, 4, …");
    EXPECT_EQ(entries[2].text, "1e-06");
    EXPECT_LT(entries[3].text.size(), 100U);
}

TEST(GgufFileTest, ViewsSurviveAMove) {
    const auto path = test::krill_file("krill-f16.gguf");
    Result<GgufFile> opened = GgufFile::open(path);
    ASSERT_TRUE(opened.has_value()) << opened.error().to_string();
    const std::string_view name = *opened->find_string("general.name");
    const GgufFile moved = *std::move(opened);
    EXPECT_EQ(name, "Krill");
    EXPECT_EQ(moved.find_string("general.name"), "Krill");
}

TEST(GgufFileTest, KrillsFilesAreReadWhole) {
    for (const auto& [name, type] : {std::pair{"krill-f16.gguf", DataType::kF16},
                                     std::pair{"krill-q8_0.gguf", DataType::kQ8_0}}) {
        const Result<GgufFile> file = GgufFile::open(test::krill_file(name));
        ASSERT_TRUE(file.has_value()) << file.error().to_string();
        EXPECT_EQ(file->version(), 3U);
        EXPECT_EQ(file->find_strings("tokenizer.ggml.tokens")->size(), 4096U);
        EXPECT_EQ(file->find_strings("tokenizer.ggml.tokens")->at(1), "<｜end▁of▁sentence｜>");
        EXPECT_EQ(file->find_strings("tokenizer.ggml.merges")->size(), 3823U);
        EXPECT_EQ(file->find_ints("tokenizer.ggml.token_type")->at(0), 3);
        EXPECT_EQ(file->tensors().size(), 128U);
        const TensorView* const experts = file->find_tensor("blk.6.ffn_down_exps.weight");
        ASSERT_NE(experts, nullptr);
        EXPECT_EQ(experts->type, type);
        EXPECT_EQ(experts->shape, (std::vector<std::uint64_t>{192, 256, 8}));
        EXPECT_EQ(file->find_tensor("output_norm.weight")->type, DataType::kF32);
    }
}

TEST(GgufFileTest, AMissingFileIsNamed) {
    const Result<GgufFile> file = GgufFile::open("/nowhere/model.gguf");
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code(), ErrorCode::kNotFound);
    EXPECT_NE(file.error().to_string().find("/nowhere/model.gguf"), std::string::npos);
}

TEST(GgufFileTest, ABrokenFileIsNamedBesideWhatIsBroken) {
    const auto path = test::write_temporary("broken.gguf", GgufBuilder().alignment(3).build());
    const Result<GgufFile> file = GgufFile::open(path);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(file.error().place(), path.path().string() + ": metadata general.alignment");
}

}  // namespace
}  // namespace sluice::checkpoint
