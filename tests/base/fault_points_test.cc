#include "base/fault_points.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(FaultPointsTest, AreOffUnlessNamed) {
    EXPECT_FALSE(parse_fault_points("")->any());
    const auto all = parse_fault_points(
        "slow_step=20ms,other_sampling,wrong_model,crash_after=5,stall_after=0,"
        "pull_cut,pull_flip,pull_hang,disk_flip,disk_short,disk_full,disk_error,disk_slow=2s,"
        "node_cut,node_hang,node_flip,node_other_key,move_every=3");
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, (FaultPoints{.slow_step = std::chrono::milliseconds(20),
                                 .other_sampling = true,
                                 .wrong_model = true,
                                 .crash_after = 5,
                                 .stall_after = 0,
                                 .pull_cut = true,
                                 .pull_flip = true,
                                 .pull_hang = true,
                                 .disk_flip = true,
                                 .disk_short = true,
                                 .disk_full = true,
                                 .disk_error = true,
                                 .disk_slow = std::chrono::seconds(2),
                                 .node_cut = true,
                                 .node_hang = true,
                                 .node_flip = true,
                                 .node_other_key = true,
                                 .move_every = 3}));
}

TEST(FaultPointsTest, WhatIsNoFaultIsAnErrorWithTheNearestName) {
    EXPECT_THAT(parse_fault_points("slow_stp=1s").error().message(),
                HasSubstr("did you mean 'slow_step'?"));
    for (const char* text :
         {"slow_step", "slow_step=x", "crash_after", "crash_after=-1", "wrong_model=1",
          "pull_cut=1", "disk_slow", "disk_flip=1", ",", "stall_after=1x"})
        EXPECT_FALSE(parse_fault_points(text)) << text;
}

}  // namespace
}  // namespace sluice
