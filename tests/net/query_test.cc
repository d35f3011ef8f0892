#include "net/query.h"

namespace sluice::net {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

TEST(QueryTest, FieldsAreDecoded) {
    EXPECT_EQ(
        parse_query("since=1h&pool=a%20b%26c&empty=&flag&x=1+2"),
        (Fields{{"since", "1h"}, {"pool", "a b&c"}, {"empty", ""}, {"flag", ""}, {"x", "1 2"}}));
    EXPECT_EQ(parse_query(""), Fields{});
    EXPECT_EQ(parse_query("&&a=1&a=2&"), (Fields{{"a", "2"}}));
}

TEST(QueryTest, AMalformedEscapeIsAnError) {
    for (const char* const bad : {"a=%", "a=%4", "a=%zz", "%=1", "a=% 1", "a=%+1", "a=%-1"})
        EXPECT_FALSE(parse_query(bad).has_value()) << bad;
}

TEST(QueryTest, WhatIsEncodedReadsBack) {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    EXPECT_EQ(parse_query("x=" + percent_encode(all)), (Fields{{"x", all}}));
    EXPECT_EQ(percent_encode("a-b/c"), "a-b%2Fc");
}

}  // namespace
}  // namespace sluice::net
