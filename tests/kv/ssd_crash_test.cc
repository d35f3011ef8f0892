// kill -9 during writes: what a sync had confirmed is found again, and nothing is wrong.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <semaphore>

#include "base/file_limit.h"
#include "ssd_support.h"

namespace sluice::kv {
namespace {

/// Every so many puts, one from a little before is erased.
constexpr int kEraseEvery = 7;
constexpr int kErasedBefore = 3;

std::string name(int round, int i) { return std::to_string(round) + ":" + std::to_string(i); }

std::string value(int round, int i) {
    const auto seed = static_cast<std::uint64_t>(round) * 1'000'000 + static_cast<std::uint64_t>(i);
    return value_of(seed, seed * 7919 % 150'000);
}

int kills() {
    const char* wanted = std::getenv("SLUICE_SSD_KILLS");
    return wanted != nullptr ? std::atoi(wanted) : 20;
}

/// In a process of its own: puts and erases without end, and writes into `confirmed` up to which put all
/// is synced.
[[noreturn]] void write_until_killed(SsdOptions options, int round, int confirmed) {
    auto tier = SsdTier::open(std::move(options));
    if (!tier) ::_exit(1);
    std::counting_semaphore<> syncs(2);  // So many are under way.
    for (int i = 0;; ++i) {
        while (!(*tier)->put(name(round, i), SharedBytes::own(value(round, i)), {},
                             static_cast<Retention>(i % 3))) {
            ::usleep(1000);
        }
        if (i % kEraseEvery == kEraseEvery - 1) (*tier)->erase(name(round, i - kErasedBefore));
        if (i % 5 != 4) continue;
        syncs.acquire();
        (*tier)->sync([&syncs, i, confirmed](Result<void> done) {
            if (done && ::write(confirmed, &i, sizeof i) != sizeof i) ::_exit(2);
            syncs.release();
        });
    }
}

class SsdCrashTest : public SsdTierTest {
protected:
    SsdCrashTest() : SsdTierTest(Place::kMemory) {}

    /// Runs a writer until it has confirmed something and a little longer; returns the last put that it
    /// confirmed.
    int write_and_kill(const SsdOptions& options, int round) {
        int pipe_ends[2];
        EXPECT_EQ(::pipe(pipe_ends), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            ::close(pipe_ends[0]);
            write_until_killed(options, round, pipe_ends[1]);
        }
        ::close(pipe_ends[1]);
        int last = -1;
        const std::uint64_t confirmations = 1 + random_() % 12;
        for (std::uint64_t i = 0; i < confirmations; ++i)
            if (::read(pipe_ends[0], &last, sizeof last) != sizeof last) break;
        // Somewhere within whatever it does next.
        ::usleep(static_cast<useconds_t>(random_() % 10'000));
        ::kill(child, SIGKILL);
        while (::read(pipe_ends[0], &last, sizeof last) == sizeof last) {
        }
        ::close(pipe_ends[0]);
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself: " << status;
        EXPECT_GE(last, 0);
        return last;
    }
    void expect_all_confirmed(int round, int last) {
        for (int i = 0; i <= last; ++i) {
            const int eraser = i + kErasedBefore;
            const bool may_be_erased = eraser % kEraseEvery == kEraseEvery - 1;
            const auto got = fetch(name(round, i));
            if (may_be_erased && eraser <= last) {
                EXPECT_FALSE(got.has_value()) << name(round, i) << " came back";
            } else if (!may_be_erased) {
                ASSERT_TRUE(got.has_value()) << name(round, i) << " is lost";
            }
        }
    }
    void expect_nothing_wrong() {
        std::vector<std::string> names;
        tier_->for_each([&](const SsdTier::Entry& entry) { names.push_back(entry.name); });
        for (const std::string& found : names) {
            const auto colon = found.find(':');
            const int round = std::stoi(found.substr(0, colon));
            const auto got = fetch(found);
            ASSERT_TRUE(got.has_value()) << found;
            EXPECT_EQ(got->bytes, value(round, std::stoi(found.substr(colon + 1)))) << found;
        }
        EXPECT_EQ(tier_->stats().corrupt, 0U);
    }

    std::mt19937 random_{20'261'130};
};

TEST_F(SsdCrashTest, AllThatWasSyncedIsFoundAgainAfterKills) {
    SsdOptions roomy = options();
    roomy.segment_bytes = 4 * kSegment;
    roomy.bytes = 4096 * kSegment;
    raise_file_limit();
    std::vector<int> confirmed;
    for (int round = 0; round < kills(); ++round) {
        tier_.reset();
        confirmed.push_back(write_and_kill(roomy, round));
        open(roomy);
        expect_all_confirmed(round, confirmed.back());
        EXPECT_LE(tier_->stats().torn_segments, 3U);
        if (HasFatalFailure()) return;
    }
    for (int round = 0; round < kills(); ++round) expect_all_confirmed(round, confirmed[round]);
    expect_nothing_wrong();
}

TEST_F(SsdCrashTest, NothingIsWrongAfterKillsDuringReclaims) {
    SsdOptions tight = options();
    tight.bytes = 8 * kSegment;
    for (int round = 0; round < kills(); ++round) {
        tier_.reset();
        write_and_kill(tight, round);
        open(tight);
        expect_nothing_wrong();
        EXPECT_LE(folder_.bytes_on_disk(), tight.bytes);
        if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace sluice::kv
