#include "base/fault_points.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(FaultPointsTest, AreOffUnlessNamed) {
    EXPECT_FALSE(parse_fault_points("")->any());
    const auto all = parse_fault_points(
        "slow_step=20ms,other_sampling,wrong_model,crash_after=5,stall_after=0,"
        "pull_cut,pull_flip,pull_hang,move_every=3");
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, (FaultPoints{.slow_step = std::chrono::milliseconds(20),
                                 .other_sampling = true,
                                 .wrong_model = true,
                                 .crash_after = 5,
                                 .stall_after = 0,
                                 .pull_cut = true,
                                 .pull_flip = true,
                                 .pull_hang = true,
                                 .move_every = 3}));
}

TEST(FaultPointsTest, WhatIsNoFaultIsAnErrorWithTheNearestName) {
    EXPECT_THAT(parse_fault_points("slow_stp=1s").error().message(),
                HasSubstr("did you mean 'slow_step'?"));
    for (const char* text : {"slow_step", "slow_step=x", "crash_after", "crash_after=-1",
                             "wrong_model=1", "pull_cut=1", ",", "stall_after=1x"})
        EXPECT_FALSE(parse_fault_points(text)) << text;
}

}  // namespace
}  // namespace sluice
