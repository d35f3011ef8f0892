#include "base/private_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace sluice {
namespace {

class PrivateFileTest : public testing::Test {
protected:
    PrivateFileTest() : folder_(testing::TempDir() + "sluice-XXXXXX") {
        EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    }
    ~PrivateFileTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

    std::string folder_;
};

TEST_F(PrivateFileTest, OnlyItsOwnerMayReadIt) {
    ASSERT_TRUE(write_private_file(path("keys"), "secret"));
    struct stat at{};
    ASSERT_EQ(::stat(path("keys").c_str(), &at), 0);
    EXPECT_EQ(at.st_mode & 0777U, 0600U);
    EXPECT_EQ(*read_small_file(path("keys"), 6), "secret");
}

TEST_F(PrivateFileTest, ReplacingLeavesNothingBesideAndKeepsALink) {
    ASSERT_TRUE(write_private_file(path("real"), "old"));
    std::filesystem::create_symlink(path("real"), path("link"));
    ASSERT_TRUE(write_private_file(path("link"), "new"));
    EXPECT_EQ(*read_small_file(path("real"), 100), "new");
    EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(PrivateFileTest, AFileAboveTheBoundAndAMissingOneAreErrors) {
    ASSERT_TRUE(write_private_file(path("f"), std::string(100'000, 'x')));
    EXPECT_EQ(read_small_file(path("f"), 99'999).error().code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(read_small_file(path("f"), 100'000)->size(), 100'000U);
    EXPECT_EQ(read_small_file(path("none"), 1).error().code(), ErrorCode::kNotFound);
    EXPECT_FALSE(write_private_file(path("no/such/folder"), "x"));
}

TEST_F(PrivateFileTest, ItsVersionChangesWithEachWriting) {
    EXPECT_EQ(file_version(path("f")), "");
    ASSERT_TRUE(write_private_file(path("f"), "1"));
    const std::string first = file_version(path("f"));
    ASSERT_TRUE(write_private_file(path("f"), "2"));
    EXPECT_NE(file_version(path("f")), first);
}

TEST_F(PrivateFileTest, AnEndlessFileIsReadNoFurtherThanTheBound) {
    EXPECT_EQ(read_small_file("/dev/zero", 1'000'000).error().code(), ErrorCode::kOutOfRange);
}

TEST_F(PrivateFileTest, ChangesUnderTheLockAreNotLost) {
    ASSERT_TRUE(write_private_file(path("f"), "0"));
    const auto add = [&] {
        for (int i = 0; i < 50; ++i) {
            const auto lock = lock_beside(path("f"));
            const int value = std::stoi(*read_small_file(path("f"), 100));
            ASSERT_TRUE(write_private_file(path("f"), std::to_string(value + 1)));
        }
    };
    std::thread one(add);
    std::thread two(add);
    one.join();
    two.join();
    EXPECT_EQ(*read_small_file(path("f"), 100), "100");
}

}  // namespace
}  // namespace sluice
