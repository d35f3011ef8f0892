// A disk that lies, fails, is full or takes two seconds: never a wrong block, never a hang.

#include <gmock/gmock.h>

#include "ssd_support.h"

namespace sluice::kv {
namespace {

enum class Reader { kUring, kThreads };

class SsdFaultTest : public SsdTierTest, public testing::WithParamInterface<Reader> {
protected:
    void open_here() {
        SsdOptions here = options();
        here.uring = GetParam() == Reader::kUring;
        open(here);
    }
    void plant(bool FaultPoints::* fault) {
        FaultPoints faults;
        faults.*fault = true;
        tier_->set_faults(faults);
    }
    void mend() { tier_->set_faults({}); }
    static std::string name(int i) { return "n" + std::to_string(i); }
    static std::string value(int i) { return value_of(i, 1000 + 7919 * (i % 20)); }
    void fill(int count) {
        for (int i = 0; i < count; ++i) ASSERT_TRUE(put(name(i), value(i)));
        ASSERT_TRUE(sync());
    }
    /// How many of them are there; none may be wrong.
    int found(int count) {
        int found = 0;
        for (int i = 0; i < count; ++i) {
            const auto got = fetch(name(i));
            if (!got) continue;
            EXPECT_EQ(got->bytes, value(i)) << i;
            ++found;
        }
        return found;
    }
};

INSTANTIATE_TEST_SUITE_P(Readers, SsdFaultTest, testing::Values(Reader::kUring, Reader::kThreads),
                         [](const auto& info) {
                             return info.param == Reader::kUring ? "Uring" : "Threads";
                         });

TEST_P(SsdFaultTest, AFlippedBitIsAMissForGood) {
    open_here();
    fill(20);
    plant(&FaultPoints::disk_flip);
    // A bit may flip where it says nothing: between the value and the next sector.
    const int served = found(20);
    EXPECT_LE(served, 5);
    mend();
    EXPECT_EQ(tier_->stats().corrupt, static_cast<std::uint64_t>(20 - served));
    EXPECT_EQ(found(20), served);
    ASSERT_TRUE(sync());
    open_here();
    EXPECT_EQ(found(20), served);
    fill(20);  // Their names are free again.
    EXPECT_EQ(found(20), 20);
}

TEST_P(SsdFaultTest, ShortReadsAndWritesGoOnWhereTheyEnded) {
    open_here();
    plant(&FaultPoints::disk_short);
    fill(50);
    EXPECT_EQ(found(50), 50);
    SsdOptions faulty = options();
    faulty.faults.disk_short = true;
    faulty.uring = GetParam() == Reader::kUring;
    open(faulty);
    EXPECT_EQ(found(50), 50);
}

TEST_P(SsdFaultTest, AFileThatEndsTooEarlyIsAMiss) {
    open_here();
    fill(20);
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
        if (file.path().extension() == ".segment") std::filesystem::resize_file(file.path(), 8192);
    EXPECT_LE(found(20), 1);
    EXPECT_GE(tier_->stats().corrupt, 19U);
}

TEST_P(SsdFaultTest, AFullDiskTakesNothingAndIsAskedAgainLater) {
    open_here();
    fill(50);
    const std::size_t before = tier_->stats().segments;
    plant(&FaultPoints::disk_full);
    for (int i = 50; i < 250; ++i) put(name(i), value(i));
    EXPECT_FALSE(sync());
    const SsdStats stats = tier_->stats();
    EXPECT_GE(stats.write_failures, 1U);
    // Room is made once, not with every value.
    EXPECT_LE(stats.reclaims, before);
    EXPECT_LE(stats.reclaims, 3U);
    EXPECT_GE(found(50), 5);
    mend();
    EXPECT_TRUE(eventually([&] {
        put("again", "there");
        return sync().has_value();
    }));
    EXPECT_EQ(get("again"), "there");
}

// However little it holds and however often it finds the disk full: a tier that gave all its room away
// would have none to open a segment in when the disk has room again.
TEST_P(SsdFaultTest, ADiskThatIsFullAgainAndAgainLeavesRoomToGoOn) {
    open_here();
    for (int round = 0; round < 4; ++round) {
        fill(10);
        const std::uint64_t failures = tier_->stats().write_failures;
        plant(&FaultPoints::disk_full);
        EXPECT_TRUE(eventually([&] {
            // What fits into an open segment is written in between.
            put("small", "value");
            for (int i = 50; i < 90; ++i) put(name(i), value(i));
            return !sync() && tier_->stats().write_failures >= failures + 2;
        }));
        mend();
        EXPECT_TRUE(eventually([&] {
            put("again", value(round));
            return sync().has_value();
        }));
        EXPECT_TRUE(get("again") == value(round)) << round;
    }
}

TEST_P(SsdFaultTest, ADiskThatFailsIsAMissAndComesBack) {
    open_here();
    fill(20);
    ASSERT_TRUE(put("kept", "old"));
    ASSERT_TRUE(sync());
    plant(&FaultPoints::disk_error);
    EXPECT_EQ(get(name(0)), "<io>");
    put("kept", "new");
    EXPECT_FALSE(sync());
    EXPECT_EQ(get("kept"), "<not_found>");  // Not the old one.
    mend();
    EXPECT_EQ(found(20), 19);
    EXPECT_TRUE(eventually([&] {
        put("kept", "newer");
        return sync().has_value();
    }));
    open_here();
    EXPECT_EQ(get("kept"), "newer");
    EXPECT_EQ(found(20), 19);
}

TEST_P(SsdFaultTest, ASyncThatNobodyAskedForAndThatFailedIsToldToTheNextWhoAsks) {
    SsdOptions at_once = options();
    at_once.sync_every = std::chrono::milliseconds(0);
    at_once.uring = GetParam() == Reader::kUring;
    open(at_once);
    fill(20);
    EXPECT_EQ(tier_->stats().sync_failures, 0U);
    plant(&FaultPoints::disk_error);
    ASSERT_TRUE(tier_->erase(name(0)));
    EXPECT_TRUE(eventually([&] { return tier_->stats().sync_failures > 0; }));
    mend();
    EXPECT_FALSE(sync());
    EXPECT_TRUE(sync());
    EXPECT_EQ(found(20), 19);
    open_here();
    EXPECT_EQ(found(20), 19);
}

TEST_P(SsdFaultTest, ADiskThatTakesTwoSecondsDelaysItsReadersAndNobodyElse) {
    open_here();
    fill(20);
    FaultPoints slow;
    slow.disk_slow = std::chrono::seconds(2);
    tier_->set_faults(slow);
    std::atomic<int> right = 0;
    std::atomic<int> ended = 0;
    for (int i = 0; i < 8; ++i) {
        tier_->get(name(i), now(), [&, i](Result<SharedBytes> got) {
            right += got && got->bytes == value(i) ? 1 : 0;
            ++ended;
        });
    }
    // None of these waits for the disk.
    EXPECT_TRUE(tier_->contains(name(3), now()));
    ASSERT_TRUE(put("waiting", "in memory"));
    EXPECT_TRUE(tier_->contains("waiting", now()));
    EXPECT_TRUE(eventually([&] { return ended == 8; }));
    EXPECT_EQ(right, 8);
    mend();
    EXPECT_EQ(get("waiting"), "in memory");
}

TEST_P(SsdFaultTest, AStartOnAFailingDiskLosesNothing) {
    open_here();
    fill(50);
    SsdOptions failing = options();
    failing.faults.disk_error = true;
    open(failing);
    EXPECT_EQ(found(50), 0);
    EXPECT_GE(tier_->stats().ignored_segments, 1U);
    open_here();
    EXPECT_EQ(found(50), 50);
}

TEST_P(SsdFaultTest, AStartThatReadsFlippedBitsServesNothingWrong) {
    open_here();
    fill(50);
    SsdOptions lying = options();
    lying.faults.disk_flip = true;
    open(lying);
    found(50);
    mend();
    found(50);
    open_here();
    found(50);
    fill(50);
    EXPECT_EQ(found(50), 50);
}

}  // namespace
}  // namespace sluice::kv
