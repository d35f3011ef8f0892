#include "dispatch/resume_pacer.h"

#include <gtest/gtest.h>

namespace sluice::dispatch {
namespace {

TEST(ResumePacerTest, LetsAsMuchThroughAsTheWorkersCanTake) {
    ResumePacer pacer(1'000);
    std::vector<ResumePacer::Turn> turns;
    for (int i = 0; i < 4; ++i) {
        auto turn = pacer.admit(0, 500, 2);
        ASSERT_TRUE(turn.has_value()) << i;
        turns.push_back(std::move(*turn));
    }
    EXPECT_FALSE(pacer.admit(0, 500, 2).has_value());
    EXPECT_TRUE(pacer.admit(1, 500, 2).has_value()) << "another pool";
    turns.pop_back();
    EXPECT_EQ(pacer.tokens(0), 1'500U);
    EXPECT_TRUE(pacer.admit(0, 500, 2).has_value());
}

TEST(ResumePacerTest, OneIsAlwaysUnderWay) {
    ResumePacer pacer(1'000);
    const auto long_one = pacer.admit(0, 50'000, 1);
    ASSERT_TRUE(long_one.has_value());
    EXPECT_FALSE(pacer.admit(0, 1, 1).has_value());
}

TEST(ResumePacerTest, ATurnThatMovesEndsOnce) {
    ResumePacer pacer(1'000);
    auto turn = pacer.admit(0, 10, 1);
    ResumePacer::Turn other = std::move(*turn);
    turn.reset();
    EXPECT_EQ(pacer.tokens(0), 10U);
    other.end();
    other.end();
    EXPECT_EQ(pacer.tokens(0), 0U);
}

}  // namespace
}  // namespace sluice::dispatch
