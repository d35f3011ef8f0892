#include "checkpoint/mapped_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "tests/support/gguf_builder.h"

namespace sluice::checkpoint {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    return {bytes.begin(), bytes.end()};
}

TEST(MappedFileTest, ShowsTheBytesOfTheFile) {
    const auto path = test::write_temporary("mapped", bytes_of("hello"));
    const Result<MappedFile> file = MappedFile::open(path);
    ASSERT_TRUE(file.has_value()) << file.error().to_string();
    EXPECT_TRUE(std::ranges::equal(file->bytes(), bytes_of("hello")));
}

TEST(MappedFileTest, BytesStayWhereTheyAreWhenTheFileMovesOrIsRemoved) {
    const auto path = test::write_temporary("moved", bytes_of("hello"));
    Result<MappedFile> opened = MappedFile::open(path);
    ASSERT_TRUE(opened.has_value());
    const std::byte* const address = opened->bytes().data();
    std::filesystem::remove(path.path());

    MappedFile constructed = std::move(*opened);
    MappedFile assigned;
    assigned = std::move(constructed);
    EXPECT_EQ(assigned.bytes().data(), address);
    EXPECT_EQ(assigned.bytes()[4], std::byte{'o'});
    EXPECT_TRUE(opened->bytes().empty());
    EXPECT_TRUE(constructed.bytes().empty());
}

TEST(MappedFileTest, AnEmptyFileHasNoBytes) {
    const auto path = test::write_temporary("empty", {});
    const Result<MappedFile> file = MappedFile::open(path);
    ASSERT_TRUE(file.has_value());
    EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFileTest, AMissingFileIsNotFoundAndNamed) {
    const Result<MappedFile> file = MappedFile::open("/nowhere/model.gguf");
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code(), ErrorCode::kNotFound);
    EXPECT_EQ(file.error().to_string(), "/nowhere/model.gguf: there is no such file");
}

TEST(MappedFileTest, AFolderAndAPipeAreRefusedWithoutWaiting) {
    const auto folder = std::filesystem::temp_directory_path();
    const Result<MappedFile> of_folder = MappedFile::open(folder);
    ASSERT_FALSE(of_folder.has_value());
    EXPECT_EQ(of_folder.error().code(), ErrorCode::kInvalid);

    const auto pipe = test::write_temporary("pipe", {});
    std::filesystem::remove(pipe.path());
    ASSERT_EQ(::mkfifo(pipe.path().c_str(), 0600), 0);
    EXPECT_FALSE(MappedFile::open(pipe).has_value());
}

}  // namespace
}  // namespace sluice::checkpoint
