#include "engine/thread_choice.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::engine {
namespace {

using std::chrono::microseconds;

TEST(ThreadChoiceTest, EachSizeOfStepGetsWhatIsFastestForIt) {
    const auto choice = ThreadChoice::measure(8, 512, [](std::size_t rows, std::size_t threads) {
        if (rows == 1) return microseconds(100 + 10 * threads);
        if (rows == 16) return threads == 2 ? microseconds(500) : microseconds(1000);
        return microseconds(8000 / threads);
    });
    EXPECT_EQ(choice.threads_for(1), 1U);
    EXPECT_EQ(choice.threads_for(15), 1U);
    EXPECT_EQ(choice.threads_for(16), 2U);
    EXPECT_EQ(choice.threads_for(256), 8U);
    EXPECT_EQ(choice.threads_for(4096), 8U);
    EXPECT_EQ(choice.most(), 8U);
    EXPECT_EQ(choice.to_string(), "auto: 1 from 1 row, 2 from 16 rows, 8 from 256 rows");
}

TEST(ThreadChoiceTest, FewerThreadsAreTakenUnlessMoreAreFivePercentFaster) {
    const auto with_gain = [](double gain) {
        return ThreadChoice::measure(2, 1, [gain](std::size_t, std::size_t threads) {
            return std::chrono::nanoseconds(
                static_cast<std::int64_t>(threads == 1 ? 1e6 : 1e6 * (1.0 - gain)));
        });
    };
    EXPECT_EQ(with_gain(0.04).most(), 1U);
    EXPECT_EQ(with_gain(0.06).most(), 2U);
}

TEST(ThreadChoiceTest, OddNumbersOfProcessorsAreTriedWhole) {
    std::set<std::size_t> tried;
    static_cast<void>(ThreadChoice::measure(6, 1, [&](std::size_t, std::size_t threads) {
        tried.insert(threads);
        return microseconds(1);
    }));
    EXPECT_EQ(tried, (std::set<std::size_t>{1, 2, 4, 6}));
}

TEST(ThreadChoiceTest, OneProcessorIsNotMeasured) {
    const auto choice = ThreadChoice::measure(1, 512, [](std::size_t, std::size_t) {
        ADD_FAILURE() << "a step was timed";
        return microseconds(1);
    });
    EXPECT_EQ(choice.threads_for(512), 1U);
}

TEST(ThreadChoiceTest, AGivenNumberIsObeyed) {
    const auto choice = ThreadChoice::fixed(3);
    EXPECT_EQ(choice.threads_for(1), 3U);
    EXPECT_EQ(choice.threads_for(1000), 3U);
    EXPECT_EQ(choice.to_string(), "3");
}

TEST(ThreadChoiceTest, SmallStepsAreMeasuredAtTheirOwnSize) {
    std::set<std::size_t> sizes;
    static_cast<void>(ThreadChoice::measure(2, 64, [&](std::size_t rows, std::size_t) {
        sizes.insert(rows);
        return microseconds(1);
    }));
    EXPECT_EQ(sizes, (std::set<std::size_t>{1, 16, 64}));
}

TEST(MedianTimeTest, RunsOnceToWarmUpAndAFewTimesToMeasure) {
    int runs = 0;
    static_cast<void>(median_time([&] { ++runs; }));
    EXPECT_GE(runs, 4);
    EXPECT_LE(runs, 16);
}

}  // namespace
}  // namespace sluice::engine
