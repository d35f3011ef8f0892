#include "base/task_pool.h"

#include <atomic>
#include <latch>

namespace sluice {
namespace {

TEST(TaskPoolTest, EveryAcceptedTaskRunsOnce) {
    std::atomic<int> runs = 0;
    std::latch done(500);
    TaskPool pool(3, 1'000);
    for (int i = 0; i < 500; ++i) {
        ASSERT_TRUE(pool.submit([&] {
            ++runs;
            done.count_down();
        }));
    }
    done.wait();
    EXPECT_EQ(runs, 500);
}

TEST(TaskPoolTest, WhatDoesNotFitIsRefused) {
    std::latch release(1);
    std::latch started(1);
    TaskPool pool(1, 2);
    ASSERT_TRUE(pool.submit([&] {
        started.count_down();
        release.wait();
    }));
    started.wait();
    EXPECT_TRUE(pool.submit([] {}));
    EXPECT_TRUE(pool.submit([] {}));
    EXPECT_FALSE(pool.submit([] {}));
    release.count_down();
}

}  // namespace
}  // namespace sluice
