// Filled far beyond its limit, the tier keeps it, and keeps what is in use.

#include <gmock/gmock.h>

#include <fstream>

#include "ssd_support.h"

namespace sluice::kv {
namespace {

/// What this process has in memory.
std::uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t all = 0;
    std::uint64_t resident = 0;
    statm >> all >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class SsdBoundsTest : public SsdTierTest {
protected:
    SsdBoundsTest() : SsdTierTest(Place::kMemory) {}

    void put_all(const std::string& name, const std::string& value, Retention retention) {
        while (!put(name, value, {}, retention)) ASSERT_TRUE(sync());
    }
};

TEST_F(SsdBoundsTest, FilledToThreeTimesItsLimitItKeepsTheLimitAndWhatIsInUse) {
    SsdOptions small = options();
    small.bytes = 24 * kSegment;
    open(small);
    std::atomic<bool> done = false;
    std::uint64_t most = 0;
    std::thread watcher([&] {
        while (!done) most = std::max({most, folder_.bytes_on_disk(), tier_->stats().bytes});
    });
    const std::string hot = value_of(1, 40'000);
    int hot_ones = 0;  // Some in each of the first segments, which have to go some time.
    const std::uint64_t total = 3 * small.bytes;
    int count = 0;
    for (std::uint64_t bytes = 0; bytes < total; bytes += 100'000, ++count) {
        put_all("cold" + std::to_string(count), value_of(count, 100'000),
                static_cast<Retention>(count % 3));
        if (count % 5 == 0 && hot_ones < 20)
            put_all("hot" + std::to_string(hot_ones++), hot, Retention::kChat);
        if (count % 20 != 0) continue;
        ASSERT_TRUE(sync());
        for (int i = 0; i < hot_ones; ++i) ASSERT_EQ(get("hot" + std::to_string(i)), hot) << count;
    }
    ASSERT_TRUE(sync());
    done = true;
    watcher.join();
    EXPECT_LE(most, small.bytes);
    const SsdStats stats = tier_->stats();
    EXPECT_GT(stats.bytes, small.bytes / 2);
    EXPECT_GT(stats.reclaims, 40U);
    EXPECT_GT(stats.carried_bytes, 0U);
    EXPECT_LT(stats.carried_bytes, stats.user_bytes / 2);
    EXPECT_GE(stats.written_bytes, stats.user_bytes + stats.carried_bytes);
    EXPECT_EQ(get("cold0"), "<not_found>");
    for (int i = count - 50; i < count; ++i)
        EXPECT_EQ(get("cold" + std::to_string(i)), value_of(i, 100'000));
    open(small);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(get("hot" + std::to_string(i)), hot);
}

TEST_F(SsdBoundsTest, WhenAllIsInUseTheNewStillFindsRoom) {
    SsdOptions small = options();
    small.bytes = 8 * kSegment;
    open(small);
    for (int i = 0; i < 400; ++i) {
        put_all("n" + std::to_string(i), value_of(i, 100'000), Retention::kChat);
        if (i % 8 != 7) continue;
        ASSERT_TRUE(sync());
        int found = 0;
        for (int j = 0; j <= i; ++j) found += fetch("n" + std::to_string(j)).has_value() ? 1 : 0;
        ASSERT_GE(found, std::min(i, 20));
        ASSERT_EQ(get("n" + std::to_string(i)), value_of(i, 100'000));
        ASSERT_LE(tier_->stats().bytes, small.bytes);
    }
}

TEST_F(SsdBoundsTest, TheNumberOfEntriesIsBounded) {
    SsdOptions few = options();
    few.entries = 1000;
    open(few);
    for (int i = 0; i < 5000; ++i) put_all("n" + std::to_string(i), "v", Retention::kChat);
    ASSERT_TRUE(sync());
    // Seen when a segment is opened, so up to one segment's entries more.
    EXPECT_LE(tier_->stats().entries, 1000 + kSegment / kSsdSectorBytes);
    EXPECT_EQ(get("n4999"), "v");
}

TEST_F(SsdBoundsTest, MemoryIsFlatOverPutsAndReclaims) {
    const char* wanted = std::getenv("SLUICE_SSD_PUTS");
    const int puts = wanted != nullptr ? std::atoi(wanted) : 200'000;
    SsdOptions small = options();
    small.bytes = 32 * kSegment;
    small.queue_bytes = kSegment;
    open(small);
    std::uint64_t early = 0;
    for (int i = 0; i < puts; ++i) {
        put_all("n" + std::to_string(i), "v" + std::to_string(i), Retention::kChat);
        if (i == puts / 4) early = resident_bytes();
    }
    ASSERT_TRUE(sync());
    EXPECT_LT(resident_bytes(), early + 8 * 1024 * 1024);
    EXPECT_GT(tier_->stats().reclaims, 10U);
    EXPECT_EQ(get("n" + std::to_string(puts - 1)), "v" + std::to_string(puts - 1));
}

}  // namespace
}  // namespace sluice::kv
