#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "trace/random.h"

namespace sluice::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(EventQueueTest, EventsHappenInOrderOfTimeThenOfAsking) {
    EventQueue queue;
    std::vector<int> seen;
    queue.after(milliseconds(2), [&] { seen.push_back(2); });
    queue.after(milliseconds(1), [&] { seen.push_back(0); });
    queue.after(milliseconds(1), [&] { seen.push_back(1); });
    while (queue.step()) {
    }
    EXPECT_EQ(seen, (std::vector{0, 1, 2}));
    EXPECT_EQ(queue.now(), Time(milliseconds(2)));
}

TEST(EventQueueTest, TheClockStandsAtTheEventThatHappens) {
    EventQueue queue;
    Time inside;
    queue.after(seconds(3), [&] { inside = queue.now(); });
    EXPECT_TRUE(queue.step());
    EXPECT_EQ(inside, Time(seconds(3)));
    EXPECT_FALSE(queue.step());
}

TEST(EventQueueTest, ATimeThatHasPassedIsNow) {
    EventQueue queue;
    Time late;
    queue.after(seconds(3), [&] { queue.at(Time(seconds(1)), [&] { late = queue.now(); }); });
    while (queue.step()) {
    }
    EXPECT_EQ(late, Time(seconds(3)));
}

TEST(EventQueueTest, ACancelledEventDoesNotHappenAndItsNameFindsNoLaterOne) {
    EventQueue queue;
    int happened = 0;
    const auto first = queue.after(seconds(1), [&] { happened += 1; });
    queue.cancel(first);
    queue.after(seconds(1), [&] { happened += 10; });  // Takes the freed place.
    queue.cancel(first);
    while (queue.step()) {
    }
    EXPECT_EQ(happened, 10);
}

TEST(EventQueueTest, AnEventMayCancelAndAskForOthers) {
    EventQueue queue;
    int happened = 0;
    const auto later = queue.after(seconds(2), [&] { happened += 100; });
    queue.after(seconds(1), [&] {
        queue.cancel(later);
        queue.after(seconds(1), [&] { happened += 1; });
    });
    while (queue.step()) {
    }
    EXPECT_EQ(happened, 1);
}

// Whatever is asked for and taken back, what is left happens once each, and time never goes back.
TEST(EventQueueTest, RandomLivesLeaveNothing) {
    trace::Random random(7);
    EventQueue queue;
    std::vector<EventQueue::EventId> ids;
    std::size_t asked = 0;
    std::size_t cancelled = 0;
    std::size_t happened = 0;
    Time last{};
    for (int i = 0; i < 20'000; ++i) {
        switch (random.next() % 3) {
            case 0:
            case 1: {
                ++asked;
                const auto delay = milliseconds(random.next() % 1'000);
                ids.push_back(queue.after(delay, [&] { ++happened; }));
                break;
            }
            default: {
                const std::size_t before = queue.pending();
                if (!ids.empty()) queue.cancel(ids[random.next() % ids.size()]);
                cancelled += before - queue.pending();
                if (random.next() % 2 == 0) queue.step();
            }
        }
        EXPECT_GE(queue.now(), last);
        last = queue.now();
        ASSERT_EQ(queue.pending(), asked - cancelled - happened);
    }
    while (queue.step()) {
    }
    EXPECT_EQ(happened + cancelled, asked);
    EXPECT_EQ(queue.pending(), 0u);
}

}  // namespace
}  // namespace sluice::sim
