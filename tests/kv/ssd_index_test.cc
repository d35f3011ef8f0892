#include "kv/ssd_index.h"

#include <gmock/gmock.h>

#include <random>

namespace sluice::kv {
namespace {

using testing::ElementsAre;

class SsdIndexTest : public testing::Test {
protected:
    SsdIndex::Segment& segment(std::uint64_t number, Retention retention = Retention::kChat) {
        return index_.add_segment({.retention = retention, .number = number, .nonce = number},
                                  nullptr);
    }
    void add(SsdIndex::Segment& segment, std::string name, std::uint64_t sequence,
             std::uint64_t bytes = 100, std::uint64_t parent = kSsdNoKin) {
        const auto slot = static_cast<std::uint32_t>(segment.entries.size());
        index_.add(segment, {.offset = kSsdSectorBytes * (1 + slot),
                             .value_bytes = bytes,
                             .sequence = sequence,
                             .expires_ms = kSsdNever,
                             .slot = slot,
                             .parent = parent,
                             .name = std::move(name)});
    }
    void use(const SsdIndex::Place& place) { index_.use(place, kNow); }
    SsdIndex::Segment* victim() {
        const auto victims = index_.victims(1);
        return victims.empty() ? nullptr : index_.segment(victims.front());
    }

    static constexpr std::int64_t kNow = 1'800'000'000'000;
    SsdIndex index_;
};

TEST_F(SsdIndexTest, OfTwoEntriesTheLaterOneCountsInWhateverOrderTheyAreFound) {
    SsdIndex::Segment& first = segment(1);
    SsdIndex::Segment& second = segment(2);
    add(second, "name", 9);
    add(first, "name", 4);
    EXPECT_EQ(index_.find("name")->segment, &second);
    add(first, "name", 12);
    EXPECT_EQ(index_.find("name")->segment, &first);
    EXPECT_EQ(index_.entries(), 1U);
    EXPECT_EQ(first.live, 1U);
    EXPECT_EQ(second.live, 0U);
    // Both others are dead on disk as well.
    const auto dirty = index_.take_dirty();
    ASSERT_EQ(dirty.size(), 2U);
    EXPECT_THAT(dirty[0].lives, ElementsAre(SsdLife{.slot = 0, .expires_ms = kSsdErased}));
    EXPECT_THAT(dirty[1].lives, ElementsAre(SsdLife{.slot = 0, .expires_ms = kSsdErased}));
    EXPECT_FALSE(index_.dirty());
}

TEST_F(SsdIndexTest, TheVictimIsTheOldestOfThoseThatWereUsedLeast) {
    for (std::uint64_t number = 1; number <= 20; ++number)
        add(segment(number), "n" + std::to_string(number), number);
    EXPECT_EQ(victim()->header.number, 1U);
    use(*index_.find("n1"));
    use(*index_.find("n2"));
    EXPECT_EQ(victim()->header.number, 3U);
    index_.segment(3)->open = true;
    EXPECT_EQ(victim()->header.number, 4U);
    for (int i = 1; i <= 12; ++i) use(*index_.find("n" + std::to_string(i)));
    EXPECT_EQ(victim()->header.number, 13U);
    index_.kill(*index_.find("n5"));
    EXPECT_EQ(victim()->header.number, 5U);
}

TEST_F(SsdIndexTest, AnOldSegmentWithLittleInUseGoesBeforeAYoungOneWithNone) {
    SsdIndex::Segment& old = segment(1);
    for (int i = 0; i < 10; ++i) add(old, "old" + std::to_string(i), 1 + i);
    use(*index_.find("old3"));
    for (std::uint64_t number = 2; number <= 10; ++number)
        add(segment(number), "n" + std::to_string(number), 100 + number);
    EXPECT_EQ(victim()->header.number, 2U);  // Nearly as old, and costs nothing.
    for (std::uint64_t number = 2; number <= 5; ++number) index_.remove_segment(number);
    EXPECT_EQ(victim()->header.number, 1U);
}

TEST_F(SsdIndexTest, AnEntryKnowsWhatFollowsItWhateverComesFirst) {
    const std::uint64_t parent = ssd_kin("parent");
    add(segment(1), "a", 1, 100, parent);
    EXPECT_FALSE(index_.find_kin(parent));
    EXPECT_TRUE(index_.is_followed_outside(parent, 2));
    EXPECT_FALSE(index_.is_followed_outside(parent, 1));
    add(segment(2), "b", 2, 100, parent);
    add(*index_.segment(2), "parent", 3);
    EXPECT_EQ(index_.find_kin(parent), index_.find("parent"));
    EXPECT_TRUE(index_.is_followed_outside(parent, 2));
    EXPECT_TRUE(index_.is_followed_outside(parent, 1));
    EXPECT_FALSE(index_.is_followed_outside(ssd_kin("a"), 9));
    index_.kill(*index_.find("a"));
    EXPECT_FALSE(index_.is_followed_outside(parent, 2));
    add(*index_.segment(2), "c", 4, 100, parent);
    SsdIndex::Cursor seen;
    EXPECT_EQ(index_.next_follower(parent, seen), index_.find("b"));
    EXPECT_EQ(index_.next_follower(parent, seen), index_.find("c"));
    EXPECT_FALSE(index_.next_follower(parent, seen));
    index_.remove_segment(2);
    EXPECT_FALSE(index_.next_follower(parent, seen = {}));
}

TEST_F(SsdIndexTest, AUseIsOneOfAllThatAnEntryFollowsUpToWhatIsOver) {
    add(segment(1), "over", 1);
    add(*index_.segment(1), "root", 2, 100, ssd_kin("over"));
    add(segment(2), "middle", 3, 100, ssd_kin("root"));
    add(segment(3), "leaf", 4, 100, ssd_kin("middle"));
    for (const char* name : {"over", "root", "middle", "leaf"})
        index_.set_expiry(*index_.find(name), kNow + 1'000);
    index_.set_expiry(*index_.find("over"), kNow);
    const auto entry = [&](const char* name) { return index_.find(name)->entry(); };
    index_.use(*index_.find("middle"), kNow);
    EXPECT_TRUE(entry("root").used && entry("middle").used);
    EXPECT_FALSE(entry("leaf").used || entry("over").used);
    index_.use(*index_.find("leaf"), kNow, kNow + 61'000);
    EXPECT_EQ(entry("leaf").expires_ms, kNow + 61'000);
    EXPECT_EQ(entry("root").expires_ms, kNow + 61'000);
    EXPECT_EQ(entry("over").expires_ms, kNow);
    // Less than a minute more is no news.
    index_.use(*index_.find("leaf"), kNow, kNow + 120'000);
    EXPECT_EQ(entry("leaf").expires_ms, kNow + 61'000);
}

TEST_F(SsdIndexTest, AWalkSeesAllThatLivesAlsoWhenSegmentsGoMeanwhile) {
    for (std::uint64_t number = 1; number <= 10; ++number) {
        SsdIndex::Segment& here = segment(number);
        for (int i = 0; i < 1000; ++i)
            add(here, std::to_string(number) + ":" + std::to_string(i), number * 1000 + i);
    }
    SsdIndex::Cursor cursor;
    std::vector<SsdIndex::Place> places;
    std::size_t seen = 0;
    std::size_t steps = 0;
    for (bool more = true; more; ++steps) {
        more = index_.walk(cursor, places);
        seen += places.size();
        if (steps == 0) index_.remove_segment(9);
    }
    EXPECT_EQ(seen, 9000U);
    EXPECT_GT(steps, 2U);
}

TEST_F(SsdIndexTest, SumsAlwaysEqualWhatLives) {
    std::mt19937 random(1);
    std::uint64_t sequence = 0;
    for (int step = 0; step < 20'000; ++step) {
        const std::string name = std::to_string(random() % 300);
        const auto place = index_.find(name);
        switch (random() % 8) {
            case 0:
                if (place) index_.kill(*place);
                break;
            case 1:
                if (place) use(*place);
                break;
            case 2:
                if (index_.segments() > 5)
                    if (auto* oldest = victim()) index_.remove_segment(oldest->header.number);
                break;
            case 3: segment(++sequence, static_cast<Retention>(random() % 3)); break;
            default:
                if (auto* any = victim()) add(*any, name, ++sequence, random() % 10'000);
        }
        if (step % 100 != 0) continue;
        std::uint64_t live = 0;
        std::size_t count = 0;
        SsdIndex::Cursor cursor;
        std::vector<SsdIndex::Place> places;
        for (bool more = true; more;) {
            more = index_.walk(cursor, places);
            count += places.size();
            for (const auto& each : places) live += each.bytes();
        }
        std::uint64_t total = 0;
        for (const Retention each : {Retention::kAgent, Retention::kChat, Retention::kNone})
            total += index_.live_bytes(each);
        ASSERT_EQ(live, total);
        ASSERT_EQ(count, index_.entries());
    }
}

}  // namespace
}  // namespace sluice::kv
