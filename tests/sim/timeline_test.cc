#include "sim/timeline.h"

#include <gtest/gtest.h>

namespace sluice::sim {
namespace {

TEST(TimelineTest, CountsBySecond) {
    Timeline timeline;
    timeline.at(Time(std::chrono::milliseconds(999))).tokens += 1;
    timeline.at(Time(std::chrono::milliseconds(1'000))).tokens += 2;
    ASSERT_EQ(timeline.stretches().size(), 2u);
    EXPECT_EQ(timeline.stretches()[0].tokens, 1u);
    EXPECT_EQ(timeline.stretches()[1].tokens, 2u);
}

TEST(TimelineTest, ALongRunTakesNoMoreMemoryAndLosesNothing) {
    Timeline timeline;
    constexpr std::uint64_t kSeconds = 100'000;
    for (std::uint64_t second = 0; second < kSeconds; ++second)
        ++timeline.at(Time(std::chrono::seconds(second))).completed;
    EXPECT_LE(timeline.stretches().size(), Timeline::kStretches);
    EXPECT_EQ(timeline.width(), std::chrono::seconds(64));
    std::uint64_t sum = 0;
    for (const Timeline::Stretch& stretch : timeline.stretches()) sum += stretch.completed;
    EXPECT_EQ(sum, kSeconds);
    EXPECT_EQ(timeline.stretches()[0].completed, 64u);
}

}  // namespace
}  // namespace sluice::sim
