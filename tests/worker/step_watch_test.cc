#include "worker/step_watch.h"

#include <gtest/gtest.h>

namespace sluice::worker {
namespace {

using std::chrono::seconds;

constexpr StepWatch::Time kStart{std::chrono::hours(1)};

TEST(StepWatchTest, WorkWithoutAStepIsStuckOnceItsTimeIsUp) {
    StepWatch watch(seconds(10));
    EXPECT_FALSE(watch.stuck({.live = 1, .steps = 7}, kStart));
    EXPECT_FALSE(watch.stuck({.live = 1, .steps = 7}, kStart + seconds(9)));
    EXPECT_TRUE(watch.stuck({.live = 1, .steps = 7}, kStart + seconds(10)));
    EXPECT_TRUE(watch.stuck({.live = 3, .steps = 7}, kStart + seconds(11)));
}

TEST(StepWatchTest, AStepEndsIt) {
    StepWatch watch(seconds(10));
    EXPECT_FALSE(watch.stuck({.live = 1, .steps = 7}, kStart));
    EXPECT_TRUE(watch.stuck({.live = 1, .steps = 7}, kStart + seconds(10)));
    EXPECT_FALSE(watch.stuck({.live = 1, .steps = 8}, kStart + seconds(11)));
    EXPECT_FALSE(watch.stuck({.live = 1, .steps = 8}, kStart + seconds(20)));
}

TEST(StepWatchTest, AnEngineWithNothingToDoMayRestForever) {
    StepWatch watch(seconds(10));
    EXPECT_FALSE(watch.stuck({.steps = 7}, kStart));
    EXPECT_FALSE(watch.stuck({.steps = 7}, kStart + seconds(1'000)));
    // The rest before does not count against what comes now.
    EXPECT_FALSE(watch.stuck({.live = 1, .steps = 7}, kStart + seconds(1'001)));
    EXPECT_FALSE(watch.stuck({.live = 1, .steps = 7}, kStart + seconds(1'010)));
    EXPECT_TRUE(watch.stuck({.live = 1, .steps = 7}, kStart + seconds(1'011)));
}

}  // namespace
}  // namespace sluice::worker
