#include "kv/load_choice.h"

#include <gtest/gtest.h>

namespace sluice::kv {
namespace {

using std::chrono::milliseconds;

TEST(LoadChoiceTest, TakesWhatIsSooner) {
    const LoadPrediction quick{.compute = milliseconds(100), .load = milliseconds(20)};
    const LoadPrediction slow{.compute = milliseconds(100), .load = milliseconds(200)};
    EXPECT_EQ(choose(quick, {}, false), LoadChoice::kLoad);
    EXPECT_EQ(choose(slow, {}, false), LoadChoice::kRecompute);
}

TEST(LoadChoiceTest, WhatIsLoadedWhileOthersAreComputedIsFree) {
    LoadPrediction slow{.compute = milliseconds(100), .load = milliseconds(200)};
    slow.queue = milliseconds(90);
    EXPECT_EQ(choose(slow, {}, false), LoadChoice::kRecompute);
    slow.queue = milliseconds(110);
    EXPECT_EQ(choose(slow, {}, false), LoadChoice::kLoad);
    slow.queue = milliseconds(1'000);
    EXPECT_EQ(choose(slow, {}, false), LoadChoice::kLoad);
}

TEST(LoadChoiceTest, ASlowTierIsTriedNowAndThen) {
    const LoadPrediction slow{.compute = milliseconds(100), .load = milliseconds(200)};
    EXPECT_EQ(choose(slow, {}, true), LoadChoice::kProbe);
}

TEST(LoadChoiceTest, CanBeForcedForTests) {
    const LoadPrediction quick{.compute = milliseconds(100), .load = milliseconds(20)};
    EXPECT_EQ(choose(quick, ForcedChoice::kRecompute, true), LoadChoice::kRecompute);
    EXPECT_EQ(choose({.load = milliseconds(1)}, ForcedChoice::kLoad, false), LoadChoice::kLoad);
}

TEST(LoadChoiceTest, NobodyWaitsLongerThanComputingWouldHaveTaken) {
    const LoadPrediction one{.queue = milliseconds(50), .compute = milliseconds(100)};
    EXPECT_EQ(patience(one, milliseconds(2'000)), milliseconds(150));
    EXPECT_EQ(patience(one, milliseconds(80)), milliseconds(80));
    EXPECT_EQ(patience({}, milliseconds(2'000)), milliseconds(20));
}

TEST(LoadChoiceTest, ALookUpMayCostAPartOfWhatItCouldSave) {
    const milliseconds most(100);
    EXPECT_EQ(look_up_patience({.compute = milliseconds(100)}, most), milliseconds(25));
    EXPECT_EQ(look_up_patience({.compute = milliseconds(4'000)}, most), most);
    EXPECT_EQ(look_up_patience({.queue = milliseconds(60), .compute = milliseconds(40)}, most),
              milliseconds(70));
    EXPECT_EQ(look_up_patience({}, most), milliseconds(5));
    EXPECT_EQ(look_up_patience({}, milliseconds(1)), milliseconds(5));
}

}  // namespace
}  // namespace sluice::kv
