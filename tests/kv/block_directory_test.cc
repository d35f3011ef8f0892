#include "kv/block_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <ranges>
#include <thread>

#include "kv/block_value.h"
#include "tests/kv/folder.h"

namespace sluice::kv {
namespace {

using namespace std::chrono_literals;
using testing::Folder;

using Written = BlockDirectory::Written;

const WallTime kNow = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 12 / 1));

BlockName name_of(std::string_view what, Retention retention = Retention::kChat) {
    return {.tenant = "acme", .retention = retention, .key = sha256(what)};
}

std::string value_of(std::string_view what, std::string_view payload = "some payload") {
    const BlockHeader header{.key = sha256(what),
                             .parent = sha256("parent"),
                             .component = "mla",
                             .tokens = 64,
                             .producer = sha256("producer"),
                             .payload_checksum = {}};
    return encode_block(header, payload.size(), [payload](std::span<std::byte> out) {
        std::memcpy(out.data(), payload.data(), payload.size());
    });
}

class BlockDirectoryTest : public ::testing::Test {
protected:
    BlockDirectory open(const FaultPoints& faults = {}) {
        auto directory = BlockDirectory::open(folder.path() / "kv", {}, faults);
        EXPECT_TRUE(directory.has_value()) << directory.error().to_string();
        return *std::move(directory);
    }
    [[nodiscard]] std::vector<std::filesystem::path> files() const {
        std::vector<std::filesystem::path> found;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
            if (!entry.is_directory()) found.push_back(entry.path());
        return found;
    }
    void overwrite(std::string_view text) const {
        ASSERT_EQ(files().size(), 1U);
        const auto path = files().front();
        struct stat before{};
        ASSERT_EQ(::stat(path.c_str(), &before), 0);
        std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
        const timespec times[2] = {before.st_mtim, before.st_mtim};
        ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    }

    Folder folder;
};

TEST_F(BlockDirectoryTest, KeepsABlockForAnotherProcess) {
    EXPECT_EQ(open().write(name_of("a"), value_of("a"), kNow), Written::kStored);
    const BlockDirectory other = open();
    EXPECT_TRUE(other.contains(name_of("a"), kNow));
    const auto read = other.read(name_of("a"), kNow);
    ASSERT_TRUE(read.has_value()) << read.error().to_string();
    EXPECT_EQ(read->bytes, value_of("a"));
    EXPECT_FALSE(other.contains(name_of("b"), kNow));
    EXPECT_EQ(other.read(name_of("b"), kNow).error().code(), ErrorCode::kNotFound);
}

TEST_F(BlockDirectoryTest, TheFileHasTheBlocksNameTwoFoldersDeep) {
    ASSERT_EQ(open().write(name_of("a"), value_of("a"), kNow), Written::kStored);
    const std::string hex = to_hex(sha256("a"));
    EXPECT_EQ(files(), std::vector{folder.path() / "kv" / hex.substr(0, 2) / hex.substr(2, 2) /
                                   ("kv:acme:chat:" + hex)});
}

TEST_F(BlockDirectoryTest, AnotherTenantsOrClassesBlockIsAnotherBlock) {
    const BlockDirectory directory = open();
    ASSERT_EQ(directory.write(name_of("a"), value_of("a"), kNow), Written::kStored);
    EXPECT_FALSE(directory.contains(name_of("a", Retention::kAgent), kNow));
    BlockName other = name_of("a");
    other.tenant = "../acme";
    EXPECT_FALSE(directory.contains(other, kNow));
    EXPECT_EQ(directory.write(other, value_of("a"), kNow), Written::kStored);
    EXPECT_EQ(files().size(), 2U);  // And none outside of the folder.
}

TEST_F(BlockDirectoryTest, ASecondWriteOfTheSamePayloadLeavesTheFirst) {
    const BlockDirectory directory = open();
    ASSERT_EQ(directory.write(name_of("a"), value_of("a"), kNow), Written::kStored);
    EXPECT_EQ(directory.write(name_of("a"), value_of("a"), kNow), Written::kWasThere);
    EXPECT_EQ(files().size(), 1U);
}

TEST_F(BlockDirectoryTest, LargeBlocksAreComparedByTheirHeaders) {
    const BlockDirectory directory = open();
    const std::string large = value_of("a", std::string(300'000, 'x'));
    ASSERT_EQ(directory.write(name_of("a"), large, kNow), Written::kStored);
    EXPECT_EQ(directory.write(name_of("a"), large, kNow), Written::kWasThere);
    const std::string other = value_of("a", std::string(300'000, 'y'));
    EXPECT_EQ(directory.write(name_of("a"), other, kNow), Written::kDiffers);
}

TEST_F(BlockDirectoryTest, AnotherPayloadOfTheSameNameIsNoticedAndTheFirstStays) {
    const BlockDirectory directory = open();
    ASSERT_EQ(directory.write(name_of("a"), value_of("a", "one"), kNow), Written::kStored);
    EXPECT_EQ(directory.write(name_of("a"), value_of("a", "two"), kNow), Written::kDiffers);
    EXPECT_EQ(directory.read(name_of("a"), kNow)->bytes, value_of("a", "one"));
}

TEST_F(BlockDirectoryTest, ABrokenFileIsNoDifferenceButWrittenOver) {
    const BlockDirectory directory = open();
    ASSERT_EQ(directory.write(name_of("a"), value_of("a", "one"), kNow), Written::kStored);
    std::string broken = value_of("a", "two");
    broken.back() ^= 1;
    overwrite(broken);
    EXPECT_EQ(directory.write(name_of("a"), value_of("a", "one"), kNow), Written::kStored);
    EXPECT_EQ(directory.read(name_of("a"), kNow)->bytes, value_of("a", "one"));
}

TEST_F(BlockDirectoryTest, TornFilesAreMissedRemovedAndWrittenAnew) {
    const std::string whole = value_of("a");
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const BlockDirectory directory = open();
        static_cast<void>(directory.write(name_of("a"), whole, kNow));
        overwrite(whole.substr(0, bytes));
        EXPECT_EQ(directory.read(name_of("a"), kNow).error().code(), ErrorCode::kCorrupt) << bytes;
        EXPECT_TRUE(files().empty());
        EXPECT_EQ(directory.write(name_of("a"), whole, kNow), Written::kStored);
        overwrite(whole.substr(0, bytes));  // Writing notices the same.
        EXPECT_EQ(directory.write(name_of("a"), whole, kNow), Written::kStored) << bytes;
    }
}

TEST_F(BlockDirectoryTest, AnotherBlocksValueIsNeverHandedOut) {
    const BlockDirectory directory = open();
    ASSERT_EQ(directory.write(name_of("a"), value_of("a"), kNow), Written::kStored);
    overwrite(value_of("b"));
    EXPECT_EQ(directory.read(name_of("a"), kNow).error().code(), ErrorCode::kCorrupt);
    EXPECT_TRUE(files().empty());
}

TEST_F(BlockDirectoryTest, AValueOfAnotherVersionIsMissedAndStays) {
    const BlockDirectory directory = open();
    ASSERT_EQ(directory.write(name_of("a"), value_of("a"), kNow), Written::kStored);
    std::string later = value_of("a");
    later[8] = 2;  // The version.
    overwrite(later);
    EXPECT_EQ(directory.read(name_of("a"), kNow).error().code(), ErrorCode::kUnsupported);
    EXPECT_EQ(files().size(), 1U);
}

TEST_F(BlockDirectoryTest, ABlockLivesForItsClassFromItsLastUseOn) {
    const BlockDirectory directory = open();
    const BlockName agent = name_of("a", Retention::kAgent);
    ASSERT_EQ(directory.write(agent, value_of("a"), kNow), Written::kStored);
    EXPECT_TRUE(directory.contains(agent, kNow + 71h));
    EXPECT_FALSE(directory.contains(agent, kNow + 72h));
    EXPECT_EQ(directory.read(agent, kNow + 72h).error().code(), ErrorCode::kNotFound);
    directory.touch(agent, kNow + 71h);
    EXPECT_TRUE(directory.contains(agent, kNow + 142h));
    EXPECT_FALSE(directory.contains(agent, kNow + 143h));
    directory.touch(agent, kNow + 143h);  // Too late.
    EXPECT_FALSE(directory.contains(agent, kNow + 143h));
    EXPECT_EQ(directory.write(agent, value_of("a"), kNow + 143h), Written::kStored);
    EXPECT_EQ(directory.write(agent, value_of("a"), kNow + 150h), Written::kWasThere);
    EXPECT_TRUE(directory.contains(agent, kNow + 221h));  // Writing it again was a use.
}

TEST_F(BlockDirectoryTest, FaultsOfTheDiskAreErrorsAndNeverWrongBlocks) {
    ASSERT_EQ(open().write(name_of("a"), value_of("a"), kNow), Written::kStored);
    EXPECT_EQ(open({.disk_error = true}).read(name_of("a"), kNow).error().code(), ErrorCode::kIo);
    EXPECT_FALSE(open({.disk_error = true}).write(name_of("b"), value_of("b"), kNow).has_value());
    const auto full = open({.disk_full = true}).write(name_of("b"), value_of("b"), kNow);
    EXPECT_EQ(full.error().code(), ErrorCode::kIo);
    EXPECT_EQ(files().size(), 1U);  // Nothing half written is left.
    EXPECT_EQ(open({.disk_flip = true}).read(name_of("a"), kNow).error().code(),
              ErrorCode::kCorrupt);
    ASSERT_EQ(open().write(name_of("a"), value_of("a"), kNow), Written::kStored);
    EXPECT_EQ(open({.disk_short = true}).read(name_of("a"), kNow).error().code(),
              ErrorCode::kCorrupt);
}

TEST_F(BlockDirectoryTest, WhatIsNoFileIsAMiss) {
    const BlockDirectory directory = open();
    ASSERT_EQ(directory.write(name_of("a"), value_of("a"), kNow), Written::kStored);
    const auto path = files().front();
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // Opening one for reading could wait for ever.
    EXPECT_EQ(directory.read(name_of("a"), kNow).error().code(), ErrorCode::kNotFound);
    std::filesystem::remove(path);
    std::filesystem::create_symlink("/dev/zero", path);
    EXPECT_FALSE(directory.read(name_of("a"), kNow).has_value());
    EXPECT_FALSE(directory.contains(name_of("a"), kNow));
}

TEST_F(BlockDirectoryTest, ManyWritersOfFewNamesNeverShowAHalfBlock) {
    const std::string payload(200'000, 'x');
    const auto work = [&](int seed) {
        const BlockDirectory directory = open();
        for (int i = 0; i < 60; ++i) {
            const std::string what = std::to_string((i * 7 + seed) % 5);
            EXPECT_TRUE(directory.write(name_of(what), value_of(what, payload), kNow).has_value());
            const auto read = directory.read(name_of(what), kNow);
            ASSERT_TRUE(read.has_value()) << read.error().to_string();
        }
    };
    std::vector<std::jthread> threads;
    for (int seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
    threads.clear();
    EXPECT_EQ(files().size(), 5U);
}

TEST(BlockDirectoryOpenTest, SaysWhyItCannotBeUsed) {
    const Folder folder;
    const auto file = folder.path() / "file";
    std::ofstream(file) << "x";
    const auto directory = BlockDirectory::open(file / "kv", {}, {});
    ASSERT_FALSE(directory.has_value());
    EXPECT_EQ(directory.error().code(), ErrorCode::kIo);
    EXPECT_NE(directory.error().message().find(file.string()), std::string::npos);
}

}  // namespace
}  // namespace sluice::kv
