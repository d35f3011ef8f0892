#include "kv/directory_sweep.h"

#include <fcntl.h>

#include <cstring>
#include <fstream>

#include "kv/block_directory.h"
#include "kv/block_value.h"
#include "kv/file_time.h"
#include "tests/kv/folder.h"

namespace sluice::kv {
namespace {

using namespace std::chrono_literals;

const WallTime kNow = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 12 / 1));

class DirectorySweepTest : public ::testing::Test {
protected:
    /// A block whose key begins with `upper`.
    void write(std::uint8_t upper, int number, Retention retention, WallTime used) const {
        BlockName name{
            .tenant = "acme", .retention = retention, .key = sha256(std::to_string(number))};
        name.key[0] = upper;
        const auto value =
            encode_block({.key = name.key, .component = "mla"}, 0, [](std::span<std::byte>) {});
        ASSERT_TRUE(directory.write(name, value, used).has_value());
    }
    [[nodiscard]] std::size_t files() const {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
            if (!entry.is_directory() && entry.path().filename() != ".swept") ++count;
        return count;
    }
    [[nodiscard]] DirectorySweep sweep(std::size_t entries = 512) const {
        return DirectorySweep({.root = folder.path(), .entries_a_step = entries, .first = 200});
    }
    static std::size_t round(DirectorySweep& sweep, WallTime now) {
        std::size_t steps = 1;
        while (sweep.step(now) == DirectorySweep::Step::kMore) ++steps;
        return steps;
    }

    testing::Folder folder;
    BlockDirectory directory = *BlockDirectory::open(folder.path(), {}, {});
};

TEST_F(DirectorySweepTest, RemovesWhatIsOverAndNothingElse) {
    for (int i = 0; i < 40; ++i) {
        write(static_cast<std::uint8_t>(7 * i), i, Retention::kAgent, kNow);
        write(static_cast<std::uint8_t>(7 * i), 100 + i, Retention::kChat, kNow);
    }
    DirectorySweep sweeper = sweep();
    round(sweeper, kNow + 71h);
    EXPECT_EQ(files(), 80U);
    round(sweeper, kNow + 80h);
    EXPECT_EQ(files(), 40U);
    EXPECT_EQ(sweeper.removed(), 40U);
    round(sweeper, kNow + 168h);
    EXPECT_EQ(files(), 0U);
}

TEST_F(DirectorySweepTest, AStepIsBounded) {
    for (int i = 0; i < 100; ++i) write(3, i, Retention::kAgent, kNow);
    DirectorySweep sweeper = sweep(10);
    std::uint64_t before = 0;
    while (sweeper.step(kNow + 100h) == DirectorySweep::Step::kMore) {
        EXPECT_LE(sweeper.removed() - before, 10U);
        before = sweeper.removed();
    }
    EXPECT_EQ(sweeper.removed(), 100U);
}

TEST_F(DirectorySweepTest, WhatAnotherProcessHasJustSweptIsPassedBy) {
    write(3, 1, Retention::kAgent, kNow);
    DirectorySweep first = sweep();
    round(first, kNow + 70h);
    DirectorySweep second = sweep();
    round(second, kNow + 73h);  // Over meanwhile, but swept three hours ago.
    EXPECT_EQ(files(), 1U);
    round(second, kNow + 76h);
    EXPECT_EQ(files(), 0U);
}

TEST_F(DirectorySweepTest, AStampOfTheFutureKeepsNobodyFromSweeping) {
    write(3, 1, Retention::kAgent, kNow);
    DirectorySweep ahead = sweep();
    round(ahead, kNow + 48h);  // A clock that was two days ahead.
    write(3, 2, Retention::kAgent, kNow - 73h);
    DirectorySweep sweeper = sweep();
    round(sweeper, kNow);
    EXPECT_EQ(files(), 1U);
}

TEST_F(DirectorySweepTest, LeftOversOfCrashesGoAfterAnHour) {
    write(3, 1, Retention::kChat, kNow);
    std::filesystem::path lower;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
        if (entry.is_regular_file()) lower = entry.path().parent_path();
    const auto left = lower / ".tmp-0123";
    std::ofstream(left) << "half";
    const timespec times[2] = {to_timespec(kNow), to_timespec(kNow)};
    ASSERT_EQ(::utimensat(AT_FDCWD, left.c_str(), times, 0), 0);
    DirectorySweep sweeper = sweep();
    round(sweeper, kNow + 59min);
    EXPECT_TRUE(std::filesystem::exists(left));
    round(sweeper, kNow + 7h);
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_EQ(files(), 1U);
}

TEST_F(DirectorySweepTest, FilesOfOthersAreNotTouched) {
    write(3, 1, Retention::kAgent, kNow);
    std::ofstream(folder.path() / "notes.txt") << "x";
    std::filesystem::create_directories(folder.path() / "ab" / "cd");
    std::ofstream(folder.path() / "ab" / "cd" / "thesis.tex") << "x";
    std::ofstream(folder.path() / "ab" / "data") << "x";
    DirectorySweep sweeper = sweep();
    round(sweeper, kNow + 24h * 365 * 20);
    EXPECT_EQ(files(), 3U);
}

TEST_F(DirectorySweepTest, AnEmptyDirectoryIsARoundAtOnce) {
    DirectorySweep sweeper = sweep();
    EXPECT_EQ(round(sweeper, kNow), 1U);
}

}  // namespace
}  // namespace sluice::kv
