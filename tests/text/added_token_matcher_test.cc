#include "text/added_token_matcher.h"

namespace sluice::text {
namespace {

AddedTokenMatcher matcher_of(const std::vector<std::string>& spellings) {
    AddedTokenMatcher matcher;
    TokenId id = 0;
    for (const std::string& spelling : spellings) EXPECT_TRUE(matcher.add(spelling, id++));
    return matcher;
}

TEST(AddedTokenMatcherTest, TheLeftmostMatchWinsAndOfThoseTheLongest) {
    const auto matcher = matcher_of({"<a", "<a>", "a>b", "<a>bcd"});
    const auto match = matcher.find("..<a>bc", 0);
    ASSERT_TRUE(match);
    EXPECT_EQ(match->begin, 2U);
    EXPECT_EQ(match->length, 3U);
    EXPECT_EQ(match->id, 1);
}

TEST(AddedTokenMatcherTest, ASearchGoesOnFromWhereItIsToldTo) {
    const auto matcher = matcher_of({"<a>"});
    EXPECT_EQ(matcher.find("<a><a>", 1)->begin, 3U);
    EXPECT_FALSE(matcher.find("<a><a>", 4));
    EXPECT_FALSE(matcher.find("<a", 0));
    EXPECT_FALSE(matcher.find("", 0));
}

TEST(AddedTokenMatcherTest, OnlyAWholeSpellingHasAnId) {
    const auto matcher = matcher_of({"<think>", "<think"});
    EXPECT_EQ(matcher.id_of("<think>"), 0);
    EXPECT_EQ(matcher.id_of("<think"), 1);
    EXPECT_EQ(matcher.id_of("<thin"), std::nullopt);
    EXPECT_EQ(matcher.id_of("<think>x"), std::nullopt);
    EXPECT_EQ(matcher.id_of(""), std::nullopt);
}

TEST(AddedTokenMatcherTest, ASpellingIsTakenOnce) {
    auto matcher = matcher_of({"x"});
    EXPECT_FALSE(matcher.add("x", 9));
    EXPECT_EQ(matcher.id_of("x"), 0);
}

}  // namespace
}  // namespace sluice::text
