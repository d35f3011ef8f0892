#include "kvnode/store_url.h"

namespace sluice::kvnode {
namespace {

StoreUrl parsed(std::string_view text) {
    const auto url = parse_store_url(text);
    EXPECT_TRUE(url.has_value()) << text;
    return url.value_or(StoreUrl{});
}

TEST(StoreUrlTest, ReadsEveryKind) {
    EXPECT_EQ(parsed("redis://node-1:7001"), (StoreUrl{.host = "node-1", .port = 7001}));
    EXPECT_EQ(parsed("redis://10.0.0.1/"), (StoreUrl{.host = "10.0.0.1", .port = 6379}));
    EXPECT_EQ(parsed("rediss://[::1]:7001"),
              (StoreUrl{.secure = true, .host = "::1", .port = 7001}));
    EXPECT_EQ(parsed("redis+cluster://a:1"),
              (StoreUrl{.kind = StoreUrl::Kind::kCluster, .host = "a", .port = 1}));
    EXPECT_EQ(parsed("rediss+cluster://a:1"),
              (StoreUrl{.kind = StoreUrl::Kind::kCluster, .secure = true, .host = "a", .port = 1}));
    EXPECT_EQ(parsed("dir:///shared/kv"),
              (StoreUrl{.kind = StoreUrl::Kind::kDirectory, .path = "/shared/kv"}));
}

TEST(StoreUrlTest, ReadsUserAndPasswordAndNamesNeither) {
    const StoreUrl url = parsed("redis://:p%40ss%3Aword@a:1");
    EXPECT_EQ(url.user, "");
    EXPECT_EQ(url.password, "p@ss:word");
    EXPECT_EQ(url.name(), "redis://a:1");
    EXPECT_EQ(parsed("redis://me:secret@a:1").user, "me");
    EXPECT_EQ(parsed("redis://me:se@cret@a:1").password, "se@cret");
}

TEST(StoreUrlTest, NamesAreUrlsThemselves) {
    for (const std::string text : {"redis://a:1", "rediss://[::1]:2", "redis+cluster://a:3",
                                   "rediss+cluster://b:4", "dir:///x/y"}) {
        EXPECT_EQ(parsed(text).name(), text);
    }
}

TEST(StoreUrlTest, RefusesWhatIsNoAddressWithoutTellingThePassword) {
    for (const std::string_view text : {"",
                                        "redis",
                                        "redis:/a",
                                        "redis://",
                                        "redis://:1",
                                        "redis://a:0",
                                        "redis://a:65536",
                                        "redis://a:x",
                                        "redis://a:1x",
                                        "redis://[::1",
                                        "redis://[::1]1",
                                        "redis://a b",
                                        "redis://a\r\nb",
                                        "redis://secret@a",
                                        "redis://:secret%4@a",
                                        "redis://:secret%zz@a:1",
                                        "redis://:secret@a:port",
                                        "dir://x",
                                        "dir://",
                                        "http://a",
                                        "redis+x://a",
                                        "redis://:secret@"}) {
        const auto url = parse_store_url(text);
        ASSERT_FALSE(url.has_value()) << text;
        EXPECT_EQ(url.error().to_string().find("secret"), std::string::npos) << text;
    }
    EXPECT_EQ(parse_store_url("memcached://a").error().code(), ErrorCode::kUnsupported);
}

TEST(StoreUrlTest, TheWholeTextIsReadBack) {
    for (const char* text :
         {"redis://h:1", "rediss://:p%40ss%3A@h:2", "redis+cluster://me:x@[::1]:3", "dir:///a/b"}) {
        const auto url = parse_store_url(text);
        ASSERT_TRUE(url.has_value()) << text;
        const auto again = parse_store_url(to_text(*url));
        ASSERT_TRUE(again.has_value()) << to_text(*url);
        EXPECT_EQ(*again, *url);
    }
}

}  // namespace
}  // namespace sluice::kvnode
