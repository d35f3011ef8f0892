#include "kv/placement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>

#include "base/limits.h"

namespace sluice::kv {
namespace {

constexpr std::size_t kExtents = 20'000;

BlockKey extent(std::size_t number) { return sha256("extent " + std::to_string(number)); }

std::vector<std::string> nodes(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i)
        names.push_back("redis://10.0.0." + std::to_string(i) + ":7001");
    return names;
}

std::vector<std::string> first_owners(const Placement& placement) {
    std::vector<std::string> owners;
    for (std::size_t i = 0; i < kExtents; ++i)
        owners.push_back(placement.members()[placement.owners(extent(i)).front()]);
    return owners;
}

double share_of_different(const std::vector<std::string>& left,
                          const std::vector<std::string>& right) {
    std::size_t different = 0;
    for (std::size_t i = 0; i < left.size(); ++i) different += left[i] != right[i] ? 1 : 0;
    return static_cast<double>(different) / static_cast<double>(left.size());
}

Placement placed(std::size_t count, std::size_t replicas = 1) {
    Placement placement(replicas);
    EXPECT_TRUE(placement.set_members(1, nodes(count)));
    return placement;
}

TEST(PlacementTest, SixteenBlocksInARowAreAnExtent) {
    EXPECT_EQ(extent_start(0), 0U);
    EXPECT_EQ(extent_start(15), 0U);
    EXPECT_EQ(extent_start(16), 16U);
    EXPECT_EQ(extent_start(47), 32U);
}

TEST(PlacementTest, WithoutMembersNobodyOwnsAnything) {
    const Placement placement;
    EXPECT_EQ(placement.epoch(), 0U);
    EXPECT_TRUE(placement.owners(extent(1)).empty());
    EXPECT_TRUE(placement.previous_owners(extent(1)).empty());
    EXPECT_EQ(placement.moved_share(), 0);
}

TEST(PlacementTest, EveryMemberOwnsAboutItsShare) {
    for (const std::size_t count : {2U, 3U, 5U, 16U}) {
        std::map<std::string, std::size_t> owned;
        for (const std::string& owner : first_owners(placed(count))) ++owned[owner];
        ASSERT_EQ(owned.size(), count);
        // Five standard deviations of a fair draw.
        const double share = 1.0 / static_cast<double>(count);
        const double bound = 5 * std::sqrt(kExtents * share * (1 - share));
        for (const auto& [name, number] : owned)
            EXPECT_NEAR(static_cast<double>(number), kExtents * share, bound) << name;
    }
}

TEST(PlacementTest, AJoinMovesExactlyWhatTheNewcomerOwnsAndALeaveBringsItBack) {
    Placement placement = placed(3);
    const std::vector<std::string> three = first_owners(placement);
    ASSERT_TRUE(placement.set_members(2, nodes(4)));
    const std::vector<std::string> four = first_owners(placement);
    for (std::size_t i = 0; i < kExtents; ++i) {
        if (four[i] == three[i]) continue;
        EXPECT_EQ(four[i], nodes(4).back());
    }
    EXPECT_NEAR(share_of_different(three, four), 0.25, 0.02);
    EXPECT_DOUBLE_EQ(placement.moved_share(), 0.25);
    ASSERT_TRUE(placement.set_members(3, nodes(3)));
    EXPECT_EQ(first_owners(placement), three);
    EXPECT_DOUBLE_EQ(placement.moved_share(), 0.25);
}

TEST(PlacementTest, TheMovedShareIsTheOneThatMoves) {
    Placement placement = placed(5);
    const std::vector<std::string> before = first_owners(placement);
    std::vector<std::string> members = nodes(8);  // Three come, two go.
    members.erase(members.begin(), members.begin() + 2);
    ASSERT_TRUE(placement.set_members(2, members));
    EXPECT_NEAR(share_of_different(before, first_owners(placement)), placement.moved_share(), 0.02);
}

TEST(PlacementTest, TheOrderOfNamesDoesNotMatterAndTwiceIsOnce) {
    std::vector<std::string> members = nodes(4);
    std::ranges::reverse(members);
    members.push_back(members.front());
    Placement placement;
    ASSERT_TRUE(placement.set_members(1, members));
    EXPECT_EQ(placement.members().size(), 4U);
    EXPECT_EQ(first_owners(placement), first_owners(placed(4)));
}

TEST(PlacementTest, OwnersAreTheSameOnEveryMachineAndInEveryBuild) {
    // Written down once: workers of different builds share nodes.
    std::string owners;
    const Placement placement = placed(4);
    for (std::size_t i = 0; i < 16; ++i)
        owners += static_cast<char>('0' + placement.owners(extent(i)).front());
    EXPECT_EQ(owners, "0122113032020201");
}

TEST(PlacementTest, OlderAndEqualEpochsChangeNothing) {
    Placement placement;
    ASSERT_TRUE(placement.set_members(7, nodes(2)));
    EXPECT_FALSE(placement.set_members(7, nodes(3)));
    EXPECT_FALSE(placement.set_members(6, nodes(3)));
    EXPECT_EQ(placement.epoch(), 7U);
    EXPECT_EQ(placement.members(), nodes(2));
}

TEST(PlacementTest, ReplicasAreDifferentMembersAndAtMostAll) {
    const Placement placement = placed(4, 2);
    for (std::size_t i = 0; i < 100; ++i) {
        const auto owners = placement.owners(extent(i));
        ASSERT_EQ(owners.size(), 2U);
        EXPECT_NE(owners[0], owners[1]);
        EXPECT_EQ(owners[0], placed(4).owners(extent(i)).front());
    }
    EXPECT_EQ(placed(1, 3).owners(extent(1)).size(), 1U);
}

TEST(PlacementTest, WithTwoReplicasTheSecondOwnerTakesOverFromTheFirst) {
    Placement placement = placed(4, 2);
    const auto owners = placement.owners(extent(3));
    const std::string second = placement.members()[owners[1]];
    std::vector<std::string> members = nodes(4);
    std::erase(members, placement.members()[owners[0]]);
    ASSERT_TRUE(placement.set_members(2, members));
    EXPECT_EQ(placement.members()[placement.owners(extent(3)).front()], second);
}

TEST(PlacementTest, WhatMovedIsStillKnownWhereItWas) {
    Placement placement = placed(3);
    const std::vector<std::string> three = first_owners(placement);
    ASSERT_TRUE(placement.set_members(2, nodes(4)));
    ASSERT_TRUE(placement.set_members(3, nodes(6)));
    std::size_t moved = 0;
    for (std::size_t i = 0; i < 1'000; ++i) {
        const auto previous = placement.previous_owners(extent(i));
        const std::string now = placement.members()[placement.owners(extent(i)).front()];
        if (now == three[i]) {
            EXPECT_TRUE(previous.empty());  // It never moved.
            continue;
        }
        ++moved;
        ASSERT_FALSE(previous.empty());
        EXPECT_EQ(placement.members()[previous.back()], three[i]);
        for (const std::size_t owner : previous) EXPECT_NE(placement.members()[owner], now);
    }
    EXPECT_GT(moved, 400U);
}

TEST(PlacementTest, WhoHasLeftIsNoPreviousOwner) {
    Placement placement = placed(4);
    ASSERT_TRUE(placement.set_members(2, nodes(3)));
    for (std::size_t i = 0; i < 1'000; ++i)
        EXPECT_TRUE(placement.previous_owners(extent(i)).empty());
}

TEST(PlacementTest, OnlySoManyEpochsAreRemembered) {
    Placement placement = placed(1);
    // One node comes with each epoch: an extent has one previous owner for each move.
    for (std::size_t count = 2; count < 200; ++count)
        ASSERT_TRUE(placement.set_members(count, nodes(count)));
    std::size_t most = 0;
    for (std::size_t i = 0; i < 1'000; ++i)
        most = std::max(most, placement.previous_owners(extent(i)).size());
    EXPECT_LT(most, limits::kKvEpochsKept);
    // What moved before the last few epochs is forgotten.
    EXPECT_TRUE(std::ranges::any_of(std::views::iota(0, 1'000), [&](int i) {
        return placement.previous_owners(extent(static_cast<std::size_t>(i))).empty();
    }));
}

}  // namespace
}  // namespace sluice::kv
