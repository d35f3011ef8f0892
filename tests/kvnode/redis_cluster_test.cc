#include "kvnode/redis_cluster.h"

#include "tests/kvnode/fake_node.h"
#include "tests/kvnode/support.h"

namespace sluice::kvnode {
namespace {

TEST(RedisClusterTest, SlotsAreThoseOfTheSpecification) {
    EXPECT_EQ(cluster_slot("123456789"), 0x31C3);
    EXPECT_EQ(cluster_slot(""), 0);
    EXPECT_EQ(cluster_slot("foo"), 12'182);
    EXPECT_EQ(cluster_slot("{user1000}.following"), cluster_slot("user1000"));
    EXPECT_EQ(cluster_slot("{user1000}.followers"), cluster_slot("{user1000}.following"));
    EXPECT_NE(cluster_slot("foo{}{bar}"), cluster_slot("bar"));
    EXPECT_EQ(cluster_slot("foo{{bar}}zap"), cluster_slot("{bar"));
    EXPECT_EQ(cluster_slot("foo{bar}{zap}"), cluster_slot("bar"));
}

TEST(RedisClusterTest, RedirectionsAreRead) {
    EXPECT_EQ(parse_redirection("MOVED 3999 127.0.0.1:6381"),
              (Redirection{.slot = 3999, .host = "127.0.0.1", .port = 6381}));
    EXPECT_EQ(parse_redirection("ASK 16383 ::1:7000"),
              (Redirection{.ask = true, .slot = 16'383, .host = "::1", .port = 7000}));
    EXPECT_EQ(parse_redirection("MOVED 1 :7000"), (Redirection{.slot = 1, .port = 7000}));
    for (const std::string_view text :
         {"", "ERR", "MOVED", "MOVED 1", "MOVED x a:1", "MOVED 16384 a:1", "MOVED -1 a:1",
          "MOVED 1 a", "MOVED 1 a:0", "MOVED 1 a:70000", "MOVED 1 a:1x", "ASK  a:1"}) {
        EXPECT_FALSE(parse_redirection(text).has_value()) << text;
    }
}

TEST(RedisClusterTest, ServersThatSendEachOtherRoundInCirclesAreAnError) {
    testing::FakeNode one;
    testing::FakeNode two;
    one.redirect_to(two.port());
    two.redirect_to(one.port());
    testing::LoopThread loop;
    std::shared_ptr<RedisCluster> cluster;
    testing::Signal done;
    loop.call([&] {
        cluster = RedisCluster::make(loop.loop(), {.address = *parse_store_url(one.url())});
        cluster->call(Lane::kLoad, {.words = {"GET", "a"}}, testing::soon(),
                      [&](const Result<kv::RespReply>& reply) {
                          EXPECT_TRUE(reply.has_value() && reply->is_error());
                          done.set();
                      });
    });
    EXPECT_TRUE(done.wait());
    EXPECT_LE(one.count("GET") + two.count("GET"), 6U);
    loop.call([&] {
        cluster->close();
        cluster.reset();
    });
}

}  // namespace
}  // namespace sluice::kvnode
