#include "kv/ssd_tier.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "ssd_support.h"

namespace sluice::kv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(SsdTierTest, WhatIsPutIsReadFromTheQueueFromDiskAndAfterARestart) {
    open();
    const std::string small = "v";
    const std::string block = value_of(1, 147'000);
    const std::string empty;
    ASSERT_TRUE(put("small", small));
    ASSERT_TRUE(put("block", block, 3600, Retention::kAgent));
    ASSERT_TRUE(put("", empty, {}, Retention::kNone));
    EXPECT_EQ(get("block"), block);  // Wherever it is by now.
    ASSERT_TRUE(sync());
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(get("small"), small);
        EXPECT_EQ(get("block"), block);
        EXPECT_EQ(get(""), empty);
        EXPECT_EQ(get("other"), "<not_found>");
        EXPECT_TRUE(tier_->contains("block", now()));
        EXPECT_FALSE(tier_->contains("other", now()));
        const auto entry = tier_->entry("block", now());
        ASSERT_TRUE(entry.has_value());
        EXPECT_EQ(entry->retention, Retention::kAgent);
        EXPECT_EQ(entry->value_bytes, block.size());
        EXPECT_EQ(entry->expires, at_seconds(kStart + 3600));
        EXPECT_EQ(tier_->stats().entries, 3U);
        open();
    }
}

TEST_F(SsdTierTest, LargeValuesComeInTheBufferTheyWereReadInto) {
    open();
    ASSERT_TRUE(put("block", value_of(1, 147'000)));
    ASSERT_TRUE(sync());
    const auto value = fetch("block");
    ASSERT_TRUE(value.has_value());
    // Name and checksums stand before it in the same memory, so it was not moved.
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(value->bytes.data()) % 64, 0U);
    EXPECT_EQ(static_cast<const void*>(value->bytes.data() - ssd_value_offset(5)),
              value->owner.get());
}

TEST_F(SsdTierTest, TheLastPutOfANameCounts) {
    open();
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(put("name", "value " + std::to_string(i)));
    EXPECT_EQ(get("name"), "value 49");
    ASSERT_TRUE(sync());
    EXPECT_EQ(get("name"), "value 49");
    ASSERT_TRUE(put("name", "at last"));
    ASSERT_TRUE(sync());
    open();
    EXPECT_EQ(get("name"), "at last");
    EXPECT_EQ(tier_->stats().entries, 1U);
}

TEST_F(SsdTierTest, ANameMayChangeItsClass) {
    open();
    for (int i = 0; i < 300; ++i) {
        const auto retention = static_cast<Retention>((2 * i + 2) % 3);
        ASSERT_TRUE(put("name", std::to_string(i), {}, retention));
    }
    ASSERT_TRUE(sync());
    EXPECT_EQ(get("name"), "299");
    open();
    EXPECT_EQ(get("name"), "299");
    EXPECT_EQ(tier_->entry("name", now())->retention, static_cast<Retention>(600 % 3));
}

TEST_F(SsdTierTest, WhatIsErasedStaysErasedAfterARestart) {
    open();
    ASSERT_TRUE(put("a", "1"));
    ASSERT_TRUE(put("b", "2"));
    ASSERT_TRUE(sync());
    ASSERT_TRUE(put("a", "3"));  // Erased while it waits, or is being written.
    EXPECT_TRUE(tier_->erase("a"));
    EXPECT_FALSE(tier_->erase("a"));
    EXPECT_EQ(get("a"), "<not_found>");
    ASSERT_TRUE(sync());
    EXPECT_EQ(get("a"), "<not_found>");
    open();
    EXPECT_EQ(get("a"), "<not_found>");
    EXPECT_EQ(get("b"), "2");
}

TEST_F(SsdTierTest, ManyAreErasedAtOnceWaitingOnesIncluded) {
    open();
    for (int i = 0; i < 300; ++i)
        ASSERT_TRUE(put((i % 2 == 0 ? "kv:one:" : "kv:two:") + std::to_string(i), "v"));
    const auto of_one = [](std::string_view name) { return name.starts_with("kv:one:"); };
    EXPECT_EQ(erase_if(of_one), 150U);
    EXPECT_EQ(get("kv:one:0"), "<not_found>");
    EXPECT_EQ(get("kv:two:1"), "v");
    ASSERT_TRUE(sync());
    open();
    EXPECT_EQ(tier_->stats().entries, 150U);
    EXPECT_EQ(get("kv:one:0"), "<not_found>");
    EXPECT_EQ(erase_if(of_one), 0U);
}

TEST_F(SsdTierTest, EntriesExpireAndUseMakesThemLiveLongerAlsoAfterARestart) {
    open();
    ASSERT_TRUE(put("used", "1", 3600));
    ASSERT_TRUE(put("idle", "2", 3600));
    ASSERT_TRUE(put("brief", "3", 3600));
    ASSERT_TRUE(sync());
    now_ += 3000;
    EXPECT_TRUE(tier_->touch("used", now() + std::chrono::seconds(3600), now()));
    EXPECT_TRUE(tier_->expire("brief", now() + std::chrono::seconds(1)));
    EXPECT_FALSE(tier_->touch("unknown", now() + std::chrono::seconds(3600), now()));
    ASSERT_TRUE(sync());
    open();
    now_ += 599;
    EXPECT_EQ(get("idle"), "2");
    EXPECT_EQ(get("brief"), "<not_found>");
    now_ += 1;
    EXPECT_FALSE(tier_->contains("idle", now()));
    EXPECT_EQ(get("idle"), "<not_found>");
    EXPECT_EQ(get("used"), "1");
    EXPECT_FALSE(tier_->touch("idle", now() + std::chrono::seconds(3600), now()));
    open();
    EXPECT_EQ(get("used"), "1");
    EXPECT_EQ(tier_->stats().entries, 1U);
    now_ += 3000;
    EXPECT_EQ(get("used"), "<not_found>");
}

TEST_F(SsdTierTest, SegmentsWhereAllHasExpiredAreRemoved) {
    open();
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(put("name" + std::to_string(i), value_of(i, 100'000), 60));
    ASSERT_TRUE(sync());
    const std::uint64_t before = tier_->stats().bytes;
    EXPECT_GT(before, 9 * kSegment);
    now_ += 60;
    EXPECT_TRUE(eventually([&] { return tier_->stats().bytes <= 2 * kSegment; }));
    EXPECT_EQ(tier_->stats().entries, 0U);
    EXPECT_EQ(tier_->stats().expired, 100U);
    EXPECT_LE(folder_.bytes_on_disk(), 2 * kSegment);
}

TEST_F(SsdTierTest, ChangesAreToldInOrder) {
    std::mutex mutex;
    std::map<std::string, std::vector<SsdChange>> told;
    SsdOptions with_listener = options();
    with_listener.listener = [&](std::span<const SsdEvent> events) {
        const std::lock_guard lock(mutex);
        for (const SsdEvent& event : events) told[event.name].push_back(event.change);
    };
    open(with_listener);
    ASSERT_TRUE(put("a", "1"));
    ASSERT_TRUE(put("b", "2", 60));
    ASSERT_TRUE(sync());
    tier_->erase("a");
    ASSERT_TRUE(put("a", "3"));
    now_ += 60;
    ASSERT_TRUE(eventually([&] { return tier_->stats().expired == 1; }));
    tier_.reset();
    EXPECT_THAT(told["a"], ElementsAre(SsdChange::kStored, SsdChange::kErased, SsdChange::kStored));
    EXPECT_THAT(told["b"], ElementsAre(SsdChange::kStored, SsdChange::kExpired));
}

TEST_F(SsdTierTest, AFullQueueDropsAndNeverServesWhatWasReplaced) {
    SsdOptions tight = options();
    tight.queue_bytes = 200'000;
    tight.faults.disk_slow = std::chrono::milliseconds(100);
    open(tight);
    ASSERT_TRUE(put("name", "old"));
    ASSERT_TRUE(sync());
    int dropped = 0;
    for (int i = 0; i < 20; ++i)
        dropped += put("fill" + std::to_string(i), value_of(i, 90'000)) ? 0 : 1;
    EXPECT_GE(dropped, 15);
    while (put("name", value_of(7, 90'000))) {
    }
    EXPECT_EQ(get("name"), "<not_found>");
    EXPECT_GE(tier_->stats().dropped, 16U);
    EXPECT_LE(tier_->stats().queue_bytes, tight.queue_bytes);
}

TEST_F(SsdTierTest, WhatWasWrittenIsSyncedWithoutAnybodyAsking) {
    SsdOptions at_once = options();
    at_once.sync_every = std::chrono::milliseconds(0);
    open(at_once);
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(put("n" + std::to_string(i), value_of(i, 100'000)));
    EXPECT_TRUE(eventually([&] {
        const SsdStats stats = tier_->stats();
        return stats.stored == 40 && stats.unsynced_bytes == 0;
    }));
    EXPECT_EQ(tier_->stats().sync_failures, 0U);
}

TEST_F(SsdTierTest, WhatIsNotSyncedYetIsCounted) {
    SsdOptions never = options();
    never.sync_every = std::chrono::hours(24);
    open(never);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(put("n" + std::to_string(i), "v"));
    EXPECT_TRUE(eventually([&] { return tier_->stats().stored == 3; }));
    EXPECT_EQ(tier_->stats().unsynced_bytes, 3 * kSsdSectorBytes);
    ASSERT_TRUE(sync());
    EXPECT_EQ(tier_->stats().unsynced_bytes, 0U);
    // A whole segment is synced when it gets its footer.
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(put("n" + std::to_string(i), value_of(i, 100'000)));
    EXPECT_TRUE(eventually([&] { return tier_->stats().stored == 23; }));
    EXPECT_LT(tier_->stats().unsynced_bytes, kSegment);
}

TEST_F(SsdTierTest, WhatFitsNoSegmentIsRefused) {
    open();
    EXPECT_FALSE(put("large", std::string(kSegment, 'x')));
    EXPECT_FALSE(put(std::string(kSsdNameBytes + 1, 'n'), "v"));
    EXPECT_EQ(tier_->stats().refused, 2U);
    EXPECT_TRUE(put("most", value_of(1, kSegment - 5 * kSsdSectorBytes)));
    ASSERT_TRUE(sync());
    EXPECT_EQ(get("most"), value_of(1, kSegment - 5 * kSsdSectorBytes));
}

TEST_F(SsdTierTest, AllEntriesAreVisited) {
    open();
    ASSERT_TRUE(put("a", "1", 60, Retention::kAgent));
    ASSERT_TRUE(put("b", "22"));
    ASSERT_TRUE(sync());
    ASSERT_TRUE(put("c", "333"));
    std::map<std::string, std::uint64_t> seen;
    tier_->for_each([&](const SsdTier::Entry& entry) { seen[entry.name] = entry.value_bytes; });
    EXPECT_EQ(seen, (std::map<std::string, std::uint64_t>{{"a", 1}, {"b", 2}, {"c", 3}}));
}

TEST_F(SsdTierTest, OneProcessHasAFolderAtATime) {
    open();
    const auto second = SsdTier::open(options());
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code(), ErrorCode::kUnavailable);
    tier_.reset();
    open();
}

TEST_F(SsdTierTest, FoldersOfOthersAreRefusedAndLeftAsTheyAre) {
    std::ofstream(folder_.path() + "/photo.jpg") << "precious";
    auto refused = SsdTier::open(options());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalid);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()),
                            std::filesystem::directory_iterator()),
              1);
    std::filesystem::remove(folder_.path() + "/photo.jpg");

    std::ofstream(folder_.path() + "/sluice-ssd-tier") << "sluice ssd tier, format 3\n";
    refused = SsdTier::open(options());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(refused.error().to_string(), HasSubstr(folder_.path()));
}

TEST_F(SsdTierTest, AFolderOfFormat1IsReadAndIsOfFormat2FromThenOn) {
    const std::string marker = folder_.path() + "/sluice-ssd-tier";
    std::ofstream(marker) << "sluice ssd tier, format 1\n";
    open();
    ASSERT_TRUE(put("a", "1"));
    std::ifstream again(marker);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}),
              "sluice ssd tier, format 2\n");
}

TEST_F(SsdTierTest, GarbageAmongTheSegmentsIsIgnoredCountedAndLeftAsItIs) {
    open();
    ASSERT_TRUE(put("a", "1"));
    ASSERT_TRUE(sync());
    tier_.reset();
    const std::string garbage = value_of(5, 100'000);
    const std::string file = folder_.path() + "/00000000000000ff.segment";
    std::ofstream(file) << garbage;
    std::ofstream(folder_.path() + "/notes.txt") << "mine";
    open();
    EXPECT_EQ(get("a"), "1");
    EXPECT_EQ(tier_->stats().ignored_segments, 1U);
    EXPECT_GE(tier_->stats().bytes, garbage.size());
    tier_.reset();
    std::ifstream again(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), garbage);
    EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/notes.txt"));
}

TEST_F(SsdTierTest, TooFewBytesAreRefused) {
    SsdOptions small = options();
    small.bytes = 7 * kSegment;
    const auto refused = SsdTier::open(small);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalid);
}

TEST_F(SsdTierTest, AStartReadsFootersNotValues) {
    open();
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(put("n" + std::to_string(i), value_of(i, 100'000)));
    ASSERT_TRUE(sync());
    open();
    const SsdStats stats = tier_->stats();
    EXPECT_EQ(stats.entries, 200U);
    EXPECT_EQ(stats.torn_segments, 0U);
    // First sector, last sector, and a footer of one.
    EXPECT_LE(stats.start_bytes_read, stats.segments * 3 * kSsdSectorBytes);
}

TEST_F(SsdTierTest, WithoutUringAndDirectAccessAllIsTheSame) {
    SsdOptions plain = options();
    plain.uring = false;
    plain.direct = false;
    open(plain);
    EXPECT_FALSE(tier_->stats().uring);
    std::map<std::string, std::string> values;
    for (int i = 0; i < 100; ++i) values["n" + std::to_string(i)] = value_of(i, i * 2000);
    for (const auto& [name, value] : values) ASSERT_TRUE(put(name, value));
    ASSERT_TRUE(sync());
    for (const auto& [name, value] : values) EXPECT_EQ(get(name), value) << name;
    open();  // And what one wrote the other reads.
    for (const auto& [name, value] : values) EXPECT_EQ(get(name), value) << name;
}

TEST_F(SsdTierTest, ManyReadsAreUnderWayAtATime) {
    open();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(put("n" + std::to_string(i), value_of(i, 60'000)));
    ASSERT_TRUE(sync());
    std::atomic<int> right = 0;
    std::atomic<int> ended = 0;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 100; ++i) {
            tier_->get("n" + std::to_string(i), now(), [&, i](Result<SharedBytes> value) {
                right += value && value->bytes == value_of(i, 60'000) ? 1 : 0;
                ++ended;
            });
        }
    }
    ASSERT_TRUE(eventually([&] { return ended == 2000; }));
    EXPECT_EQ(right, 2000);
}

TEST_F(SsdTierTest, TheEndCallsBackWhatWaits) {
    SsdOptions slow = options();
    slow.read_depth = 1;
    open(slow);
    ASSERT_TRUE(put("a", value_of(1, 50'000)));
    ASSERT_TRUE(sync());
    FaultPoints faults;
    faults.disk_slow = std::chrono::milliseconds(200);
    tier_->set_faults(faults);
    std::atomic<int> ended = 0;
    for (int i = 0; i < 10; ++i) tier_->get("a", now(), [&](Result<SharedBytes>) { ++ended; });
    tier_->sync([&](Result<void>) { ++ended; });
    tier_.reset();
    EXPECT_EQ(ended, 11);
}

}  // namespace
}  // namespace sluice::kv
