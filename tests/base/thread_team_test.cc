#include "base/thread_team.h"

#include <numeric>

namespace sluice {
namespace {

TEST(ThreadTeamTest, EveryMemberWorksOnceInEveryRound) {
    for (const std::size_t size : {1U, 2U, 5U}) {
        ThreadTeam team(size);
        std::vector<int> counts(size, 0);
        for (int round = 0; round < 2'000; ++round) {
            team.run([&](std::size_t member) { ++counts[member]; });
        }
        EXPECT_EQ(counts, std::vector<int>(size, 2'000));
    }
}

TEST(ThreadTeamTest, WhatMembersWroteIsSeenAfterTheRound) {
    ThreadTeam team(3);
    std::vector<int> values(3'000);
    for (int round = 1; round < 50; ++round) {
        team.run([&](std::size_t member) {
            for (std::size_t i = member; i < values.size(); i += 3) values[i] += 1;
        });
        ASSERT_EQ(std::accumulate(values.begin(), values.end(), 0), 3'000 * round);
    }
}

TEST(ThreadTeamTest, AsManyPartsAsMembersAreUsed) {
    ThreadTeam team(4);
    for (int round = 0; round < 2'000; ++round) {
        const std::size_t size = static_cast<std::size_t>(round) * 7 % 4 + 1;
        team.use(size);
        ASSERT_EQ(team.size(), size);
        std::array<std::atomic<int>, 4> done{};
        for (int again = 0; again < 3; ++again) team.run([&](std::size_t part) { ++done[part]; });
        for (std::size_t part = 0; part < 4; ++part) ASSERT_EQ(done[part], part < size ? 3 : 0);
    }
}

}  // namespace
}  // namespace sluice
