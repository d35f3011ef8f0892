#include "dispatch/quarantine.h"

#include <gtest/gtest.h>

namespace sluice::dispatch {
namespace {

using std::chrono::seconds;

TEST(QuarantineTest, HoldsAPromptForItsTime) {
    Quarantine quarantine(8, seconds(600));
    const Quarantine::Time start{seconds(1'000)};
    quarantine.add(7, start);
    EXPECT_TRUE(quarantine.holds(7, start));
    EXPECT_FALSE(quarantine.holds(8, start));
    EXPECT_TRUE(quarantine.holds(7, start + seconds(599)));
    EXPECT_FALSE(quarantine.holds(7, start + seconds(600)));
    EXPECT_EQ(quarantine.size(), 0U);
}

TEST(QuarantineTest, OneThatComesAgainStaysLonger) {
    Quarantine quarantine(8, seconds(600));
    const Quarantine::Time start{seconds(1'000)};
    quarantine.add(7, start);
    quarantine.add(7, start + seconds(300));
    EXPECT_TRUE(quarantine.holds(7, start + seconds(700)));
    EXPECT_FALSE(quarantine.holds(7, start + seconds(900)));
}

TEST(QuarantineTest, IsBounded) {
    Quarantine quarantine(4, seconds(600));
    const Quarantine::Time start{seconds(1'000)};
    for (std::uint64_t prompt = 0; prompt < 100; ++prompt) quarantine.add(prompt, start);
    for (int again = 0; again < 100; ++again) quarantine.add(99, start);
    EXPECT_LE(quarantine.size(), 4U);
    EXPECT_TRUE(quarantine.holds(99, start));
    EXPECT_FALSE(quarantine.holds(0, start));
}

}  // namespace
}  // namespace sluice::dispatch
