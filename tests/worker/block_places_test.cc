#include "worker/block_places.h"

#include <gtest/gtest.h>

namespace sluice::worker {
namespace {

kv::NamedBlock block(int i) {
    return {
        .key = sha256(std::to_string(i)), .parent = sha256(std::to_string(i - 1)), .first = i == 0};
}

class BlockPlacesTest : public testing::Test {
protected:
    [[nodiscard]] std::uint64_t events() const { return log_.next(); }

    kvnode::KvEventLog log_{64};
    BlockPlaces places_{log_};
};

TEST_F(BlockPlacesTest, ABlockIsThereUntilItHasLeftBothPlaces) {
    places_.stored(block(0));
    EXPECT_EQ(events(), 1U);
    places_.stored_in_memory(block(0));
    places_.removed(block(0).key);
    EXPECT_EQ(events(), 1U);
    ASSERT_EQ(places_.snapshot().blocks.size(), 1U);
    EXPECT_EQ(places_.snapshot().blocks[0].tier, "dram");
    places_.stored(block(0));
    EXPECT_EQ(places_.snapshot().blocks[0].tier, "pool");
    places_.removed_from_memory(block(0).key);
    EXPECT_EQ(events(), 1U);
    places_.removed(block(0).key);
    EXPECT_EQ(events(), 2U);
    EXPECT_TRUE(places_.snapshot().blocks.empty());
}

TEST_F(BlockPlacesTest, ASnapshotHasParentsFirstAndItsPlaceInTheLog) {
    for (int i = 0; i < 20; ++i) places_.stored(block(i));
    const auto snapshot = places_.snapshot();
    ASSERT_EQ(snapshot.blocks.size(), 20U);
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(snapshot.blocks[static_cast<std::size_t>(i)].block, block(i));
    EXPECT_EQ(snapshot.next, 20U);
}

TEST_F(BlockPlacesTest, WhatNobodyKnewOfLeavesNoTrace) {
    places_.removed(block(1).key);
    places_.removed_from_memory(block(1).key);
    EXPECT_EQ(events(), 0U);
}

}  // namespace
}  // namespace sluice::worker
