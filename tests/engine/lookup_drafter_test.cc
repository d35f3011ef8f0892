#include "engine/lookup_drafter.h"

namespace sluice::engine {
namespace {

using Tokens = std::vector<TokenId>;

Tokens draft(LookupDrafter& drafter, const Tokens& tokens, std::size_t most) {
    const auto guess = drafter.draft(tokens, most);
    return {guess.begin(), guess.end()};
}

TEST(LookupDrafterTest, WhatFollowedTheSameThreeTokensIsGuessed) {
    LookupDrafter drafter;
    EXPECT_EQ(draft(drafter, Tokens{1, 2, 3, 4, 5, 9, 1, 2, 3}, 8), (Tokens{4, 5, 9, 1}));
}

TEST(LookupDrafterTest, TheLatestPlaceWins) {
    LookupDrafter drafter;
    EXPECT_EQ(draft(drafter, Tokens{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 2), (Tokens{5, 1}));
}

TEST(LookupDrafterTest, WhatIsNewIsNotGuessed) {
    LookupDrafter drafter;
    EXPECT_TRUE(draft(drafter, Tokens{}, 8).empty());
    EXPECT_TRUE(draft(drafter, Tokens{1, 2}, 8).empty());
    EXPECT_TRUE(draft(drafter, Tokens{1, 2, 3, 4}, 8).empty());
}

TEST(LookupDrafterTest, GoodDraftsGrowAndBadOnesShrink) {
    LookupDrafter drafter;
    Tokens tokens;
    for (int round = 0; round < 3; ++round)
        for (TokenId token = 0; token < 20; ++token) tokens.push_back(token);
    EXPECT_EQ(draft(drafter, tokens, 100).size(), 4U);
    const double hopeful = drafter.acceptance();
    tokens.insert(tokens.end(), {0, 1, 2, 3, 4});
    EXPECT_EQ(draft(drafter, tokens, 100).size(), 8U);
    const double sure = drafter.acceptance();
    EXPECT_GT(sure, hopeful);
    tokens.insert(tokens.end(), {9, 10, 11});
    EXPECT_EQ(draft(drafter, tokens, 100).size(), 1U);
    EXPECT_LT(drafter.acceptance(), sure);
}

// The policy may have used only a part of a guess, or nothing; what it would have brought still counts.
TEST(LookupDrafterTest, AGuessThatNobodyUsedTeaches) {
    LookupDrafter drafter;
    Tokens tokens;
    for (int round = 0; round < 2; ++round)
        for (TokenId token = 0; token < 40; ++token) tokens.push_back(token);
    double last = drafter.acceptance();
    for (TokenId token = 0; token < 20; ++token) {
        EXPECT_FALSE(draft(drafter, tokens, 100).empty());
        EXPECT_GE(drafter.acceptance(), last);
        last = drafter.acceptance();
        tokens.push_back(token);
    }
    EXPECT_GT(last, 0.9);
}

TEST(LookupDrafterTest, ARunThatRepeatsItselfDraftsNoMoreThanItHas) {
    LookupDrafter drafter;
    EXPECT_EQ(draft(drafter, Tokens{7, 7, 7, 7}, 8), (Tokens{7}));
}

}  // namespace
}  // namespace sluice::engine
