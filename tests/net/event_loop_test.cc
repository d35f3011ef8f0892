#include "net/event_loop.h"

#include <csignal>
#include <stdexcept>

#include "net/loop_impl.h"
#include "tests/net/support.h"

namespace sluice::net {
namespace {

using std::chrono::milliseconds;
using testing::LoopThread;
using testing::Signal;

TEST(EventLoopTest, PostedWorkRunsInOrderOnTheLoopsThread) {
    LoopThread thread;
    std::vector<int> order;
    for (int i = 0; i < 1000; ++i) {
        thread.loop().post([&order, &thread, i] {
            EXPECT_TRUE(thread.loop().in_loop_thread());
            order.push_back(i);
        });
    }
    thread.call([&] {
        ASSERT_EQ(order.size(), 1000U);
        for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    });
    EXPECT_FALSE(thread.loop().in_loop_thread());
}

TEST(EventLoopTest, WorkPostedByManyThreadsAllRuns) {
    LoopThread thread;
    int count = 0;
    std::vector<std::thread> posters;
    for (int i = 0; i < 4; ++i) {
        posters.emplace_back([&] {
            for (int j = 0; j < 1000; ++j) thread.loop().post([&] { ++count; });
        });
    }
    for (std::thread& poster : posters) poster.join();
    EXPECT_EQ(thread.call([&] { return count; }), 4000);
}

TEST(EventLoopTest, WhatATurnPostsRunsAtItsEndAndWhatThatPostsWaitsForTheOthers) {
    LoopThread thread;
    std::string order;
    Signal done;
    thread.call([&] {
        EventLoop& loop = thread.loop();
        loop.post([&] { order += 'b'; });
        // Another connection's news, say: ready while this turn runs.
        asio::post(loop.impl().context, [&] { order += 'd'; });
        loop.post([&] {
            order += 'c';
            loop.post([&] {
                order += 'e';
                done.set();
            });
        });
        order += 'a';
    });
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(thread.call([&] { return order; }), "abcde");
}

TEST(EventLoopTest, StopBeforeRunEndsRunAtOnce) {
    EventLoop loop;
    bool ran = false;
    loop.post([&] { ran = true; });
    loop.stop();
    loop.run();
    EXPECT_FALSE(ran);
}

TEST(EventLoopTest, WorkPostedAfterStopIsDropped) {
    LoopThread thread;
    auto held = std::make_shared<int>(0);
    thread.stop();
    thread.loop().post([held] { ADD_FAILURE(); });
}

TEST(EventLoopTest, WorkThatThrowsHarmsNobodyElse) {
    LoopThread thread;
    thread.loop().post([] { throw std::runtime_error("a test's exception"); });
    EXPECT_EQ(thread.call([] { return 7; }), 7);
}

TEST(TimerTest, FiresOnceAfterItsDelay) {
    LoopThread thread;
    Signal fired;
    Timer timer;
    const auto start = std::chrono::steady_clock::now();
    thread.call([&] { timer = thread.loop().call_after(milliseconds(20), [&] { fired.set(); }); });
    ASSERT_TRUE(fired.wait());
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(20));
    thread.call([&] { timer.cancel(); });
}

TEST(TimerTest, ShorterDelaysFireFirst) {
    LoopThread thread;
    std::vector<int> order;
    Signal done;
    std::vector<Timer> timers;
    thread.call([&] {
        timers.push_back(thread.loop().call_after(milliseconds(30), [&] {
            order.push_back(2);
            done.set();
        }));
        timers.push_back(thread.loop().call_after(milliseconds(1), [&] { order.push_back(1); }));
    });
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(order, (std::vector{1, 2}));
    thread.call([&] { timers.clear(); });
}

TEST(TimerTest, DestroyedOrCancelledOrReplacedItNeverFires) {
    LoopThread thread;
    Signal later;
    Timer last;
    thread.call([&] {
        const auto forbidden = [] { ADD_FAILURE() << "a dead timer fired"; };
        {
            const Timer destroyed = thread.loop().call_after(milliseconds(0), forbidden);
        }
        Timer cancelled = thread.loop().call_after(milliseconds(0), forbidden);
        cancelled.cancel();
        cancelled.cancel();
        Timer replaced = thread.loop().call_after(milliseconds(0), forbidden);
        replaced = Timer();
        last = thread.loop().call_after(milliseconds(10), [&] { later.set(); });
    });
    ASSERT_TRUE(later.wait());
}

TEST(TimerTest, ItsWorkMayDestroyIt) {
    LoopThread thread;
    Signal fired;
    auto timer = std::make_unique<Timer>();
    thread.call([&] {
        *timer = thread.loop().call_after(milliseconds(0), [&, kept = std::string(100, 'x')] {
            timer.reset();
            EXPECT_EQ(kept.size(), 100U);  // The work itself lives on until it returns.
            fired.set();
        });
    });
    ASSERT_TRUE(fired.wait());
}

TEST(TimerTest, ItsWorkMayStartItAgain) {
    LoopThread thread;
    Signal fired;
    Timer timer;
    int rounds = 0;
    std::function<void()> again = [&] {
        if (++rounds == 5) return fired.set();
        timer = thread.loop().call_after(milliseconds(0), again);
    };
    thread.call(again);
    ASSERT_TRUE(fired.wait());
}

TEST(TimerTest, OutlivesItsLoopWithoutHarm) {
    Timer timer;
    {
        EventLoop loop;
        timer = loop.call_after(std::chrono::hours(24 * 365 * 200), [] { ADD_FAILURE(); });
    }
    timer.cancel();
}

TEST(EventLoopTest, ASignalArrivesAsOftenAsItIsSent) {
    LoopThread thread;
    int count = 0;
    Signal twice;
    thread.call([&] {
        thread.loop().on_signal({SIGUSR1, SIGUSR2}, [&](int signal) {
            EXPECT_EQ(signal, count == 0 ? SIGUSR1 : SIGUSR2);
            if (++count == 2) return twice.set();
            raise(SIGUSR2);
        });
    });
    raise(SIGUSR1);
    EXPECT_TRUE(twice.wait());
}

}  // namespace
}  // namespace sluice::net
