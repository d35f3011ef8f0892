#include "record/failure_journal.h"

#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <random>

#include "tests/record/support.h"

namespace sluice::record {
namespace {

std::vector<std::string> contents(const FailureJournal& journal) {
    std::vector<std::string> texts;
    auto position = journal.begin();
    while (const auto entry = journal.read(position)) {
        texts.push_back(entry->text);
        position = entry->next;
    }
    return texts;
}

TEST(FailureJournalTest, WhatIsAppendedIsThereAfterReopening) {
    const TemporaryFolder folder;
    {
        auto journal = FailureJournal::open(folder.file("j"), 4096);
        ASSERT_TRUE(journal.has_value()) << journal.error().to_string();
        EXPECT_TRUE(journal->append("one"));
        EXPECT_TRUE(journal->append(""));
        EXPECT_TRUE(journal->append("three"));
    }
    const auto again = FailureJournal::open(folder.file("j"), 4096);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(contents(*again), (std::vector<std::string>{"one", "", "three"}));
}

TEST(FailureJournalTest, AFullRingTakesNothingMoreUntilSomethingIsReleased) {
    auto journal = *FailureJournal::in_memory(64);
    EXPECT_TRUE(journal.append(std::string(20, 'a')));
    EXPECT_TRUE(journal.append(std::string(20, 'b')));
    EXPECT_FALSE(journal.append("c"));
    EXPECT_FALSE(journal.append(std::string(1000, 'd')));
    journal.release(journal.read(journal.begin())->next);
    EXPECT_TRUE(journal.append("c"));
    EXPECT_EQ(contents(journal), (std::vector<std::string>{std::string(20, 'b'), "c"}));
}

// Whatever is appended, read and released, in any order, over many laps of the ring.
TEST(FailureJournalTest, RandomLivesKeepOrderAndContent) {
    auto journal = *FailureJournal::in_memory(1000);
    std::deque<std::string> expected;
    std::mt19937 random(5);
    for (int step = 0; step < 50'000; ++step) {
        if (random() % 2 == 0) {
            const std::string text(random() % 200, static_cast<char>('a' + step % 26));
            if (journal.append(text)) expected.push_back(text);
        } else if (!expected.empty()) {
            const auto entry = journal.read(journal.begin());
            ASSERT_TRUE(entry.has_value());
            ASSERT_EQ(entry->text, expected.front());
            journal.release(entry->next);
            expected.pop_front();
        }
    }
    EXPECT_GT(journal.end(), 100 * journal.capacity());
    EXPECT_EQ(contents(journal), (std::vector<std::string>(expected.begin(), expected.end())));
}

TEST(FailureJournalTest, ADamagedEntryEndsWhatCanBeRead) {
    const TemporaryFolder folder;
    {
        auto journal = *FailureJournal::open(folder.file("j"), 4096);
        ASSERT_TRUE(journal.append("good"));
        ASSERT_TRUE(journal.append("to be damaged"));
    }
    {
        std::fstream file(folder.file("j"), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(4096 + 16 + 8 + 3);  // The fourth byte of the second text.
        file.put('X');
    }
    auto journal = *FailureJournal::open(folder.file("j"), 4096);
    EXPECT_EQ(contents(journal), std::vector<std::string>{"good"});
    journal.clear();
    EXPECT_TRUE(journal.append("new"));
    EXPECT_EQ(contents(journal), std::vector<std::string>{"new"});
}

TEST(FailureJournalTest, AFileThatIsNoRingIsSetAside) {
    const TemporaryFolder folder;
    std::ofstream(folder.file("j")) << std::string(8192, 'x');
    auto journal = FailureJournal::open(folder.file("j"), 4096);
    ASSERT_TRUE(journal.has_value());
    EXPECT_TRUE(journal->append("fine"));
    EXPECT_TRUE(std::filesystem::exists(folder.file("j.corrupt")));
    std::ofstream(folder.file("short")) << "x";
    EXPECT_TRUE(FailureJournal::open(folder.file("short"), 4096).has_value());
}

TEST(FailureJournalTest, ARingKeepsItsSizeAndWhatItHolds) {
    const TemporaryFolder folder;
    {
        auto journal = *FailureJournal::open(folder.file("j"), 4096);
        ASSERT_TRUE(journal.append("kept"));
    }
    const auto journal = *FailureJournal::open(folder.file("j"), 8192);
    EXPECT_EQ(journal.capacity(), 4096U);
    EXPECT_EQ(contents(journal), std::vector<std::string>{"kept"});
}

TEST(FailureJournalTest, OneProcessAtATime) {
    const TemporaryFolder folder;
    const auto first = FailureJournal::open(folder.file("j"), 4096);
    ASSERT_TRUE(first.has_value());
    const auto second = FailureJournal::open(folder.file("j"), 4096);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code(), ErrorCode::kUnavailable);
}

TEST(FailureJournalTest, AKilledProcessLeavesWhatItAppended) {
    const TemporaryFolder folder;
    const pid_t child = ::fork();
    if (child == 0) {
        auto journal = FailureJournal::open(folder.file("j"), 1 << 16);
        if (!journal) ::_exit(1);
        for (int i = 0; i < 100; ++i) {
            if (!journal->append("entry " + std::to_string(i))) ::_exit(2);
        }
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto journal = FailureJournal::open(folder.file("j"), 1 << 16);
    ASSERT_TRUE(journal.has_value());
    const auto texts = contents(*journal);
    ASSERT_EQ(texts.size(), 100U);
    EXPECT_EQ(texts.back(), "entry 99");
}

}  // namespace
}  // namespace sluice::record
