#include "base/durable_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace sluice {
namespace {

namespace fs = std::filesystem;

class DurableFileTest : public testing::Test {
protected:
    DurableFileTest() { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
    ~DurableFileTest() override {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    [[nodiscard]] std::string path() const { return folder_ + "/file"; }

    std::string folder_ = testing::TempDir() + "sluice-XXXXXX";
};

TEST_F(DurableFileTest, WhatIsWrittenIsReadAndNothingElseIsLeft) {
    EXPECT_EQ(*read_if_there(path(), 10), std::nullopt);
    ASSERT_TRUE(write_durably(path(), "one"));
    ASSERT_TRUE(write_durably(path(), "three"));
    EXPECT_EQ(*read_if_there(path(), 10), "three");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
    EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(DurableFileTest, AFullOrMissingPlaceIsAnErrorAndTheOldTextStays) {
    EXPECT_EQ(write_durably(folder_ + "/nowhere/file", "x").error().code(), ErrorCode::kIo);
    ASSERT_TRUE(write_durably(path(), "old"));
    fs::create_directory(path() + ".new");  // Where the new text would go.
    EXPECT_FALSE(write_durably(path(), "new"));
    EXPECT_EQ(*read_if_there(path(), 10), "old");
}

TEST_F(DurableFileTest, WhatIsTooLongOrNoFileIsAnError) {
    ASSERT_TRUE(write_durably(path(), "12345678901"));
    EXPECT_EQ(read_if_there(path(), 10).error().code(), ErrorCode::kCorrupt);
    EXPECT_FALSE(read_if_there(folder_, 10));
}

TEST_F(DurableFileTest, AFullLogStartsAnewAndTheOldOneStays) {
    for (const char* line : {"one\n", "two\n", "three\n", "four\n"})
        ASSERT_TRUE(append_durably(path(), line, 8));
    EXPECT_EQ(*read_if_there(path() + ".1", 100), "one\ntwo\n");
    EXPECT_EQ(*read_if_there(path(), 100), "three\nfour\n");
    ASSERT_TRUE(append_durably(path(), "five\n", 8));
    EXPECT_EQ(*read_if_there(path() + ".1", 100), "three\nfour\n");
}

}  // namespace
}  // namespace sluice
