// Stores of blocks on the real thing: redis-server alone and in cluster mode.

#include "kvnode/node_cluster.h"
#include "kvnode/redis_cluster.h"
#include "tests/kvnode/redis_process.h"
#include "tests/kvnode/support.h"
#include "tests/support/certificates.h"

namespace sluice::kvnode {
namespace {

using namespace std::chrono_literals;
using testing::all_blocks;
using testing::blocks;
using testing::Found;
using testing::make_chain;
using testing::RedisPair;
using testing::RedisProcess;
using testing::value_of;
using testing::Values;

using kv::Retention;

class TestClient {
public:
    explicit TestClient(const std::vector<std::string>& urls, const std::string& ca_file = {}) {
        loop.call([&] {
            cluster = std::make_unique<NodeCluster>(
                loop.loop(),
                NodeCluster::Options{.ca_file = ca_file, .connect_time = 2s, .probe_pause = 20ms});
            EXPECT_TRUE(cluster->set_members(1, urls).has_value());
        });
    }
    ~TestClient() {
        loop.call([&] { cluster.reset(); });
    }
    testing::StoreCalls* operator->() {
        calls.emplace(loop, *cluster);
        return &*calls;
    }

    testing::LoopThread loop;
    std::unique_ptr<NodeCluster> cluster;
    std::optional<testing::StoreCalls> calls;
};

std::string name_at(const Chain& chain, std::size_t index) {
    return kv::to_wire(name_of(chain, {.index = index, .retention = chain.retention}));
}

void expect_all(TestClient& client, const ChainPtr& chain) {
    EXPECT_EQ(client->find(chain), Found(chain->keys.size(), chain->retention));
    const Values values = client->load(chain, all_blocks(*chain, chain->retention));
    EXPECT_EQ(values.size(), chain->keys.size());
    for (const auto& [index, value] : values) EXPECT_EQ(value, value_of(*chain, index));
}

class RedisServerTest : public ::testing::Test {
protected:
    void SetUp() override {
        if (testing::redis_server_program().empty())
            GTEST_SKIP() << "there is no redis-server here";
    }
};

TEST_F(RedisServerTest, KeepsBlocksForTheirClassAndUseProlongsThem) {
    const RedisProcess server;
    TestClient client({"redis://" + server.place()});
    const ChainPtr chain = make_chain("a", 40, Retention::kAgent);
    client->store_all(chain);
    expect_all(client, chain);
    const std::string name = name_at(*chain, 7);
    EXPECT_EQ(server.ask("EXPIRE " + name + " 5"), ":1");
    client->touch(chain, blocks({7}, Retention::kAgent));
    client->find(chain);  // On the same connection, behind it.
    EXPECT_GT(std::stol(server.ask("TTL " + name).substr(1)), 72 * 3600 - 60);
}

TEST_F(RedisServerTest, GetsInByPasswordOnly) {
    const RedisProcess server({"--requirepass", "secret"});
    TestClient client({"redis://:secret@" + server.place()});
    TestClient stranger({"redis://" + server.place()});
    const ChainPtr chain = make_chain("a", 3);
    client->store_all(chain);
    expect_all(client, chain);
    EXPECT_EQ(stranger->find(chain), Found(3));
    EXPECT_EQ(stranger->store(chain, 0, value_of(*chain, 0)), Stored::kFailed);
}

TEST_F(RedisServerTest, SpeaksTlsAndOnlyWithWhomItBelieves) {
    net::testing::Certificates certificates;
    certificates.make("redis");
    const RedisProcess server({"--tls-cert-file", certificates.certificate("redis"),
                               "--tls-key-file", certificates.key("redis"), "--tls-ca-cert-file",
                               certificates.ca_file(), "--tls-auth-clients", "no"});
    TestClient client({"rediss://" + server.place()}, certificates.ca_file());
    const ChainPtr chain = make_chain("a", 8);
    client->store_all(chain, std::string(200'000, 'x'));
    EXPECT_EQ(client->load(chain, all_blocks(*chain)).size(), 8U);
    const net::testing::Certificates of_others;
    TestClient doubtful({"rediss://" + server.place()}, of_others.ca_file());
    EXPECT_EQ(doubtful->find(chain), Found(8));
    TestClient plain({"redis://" + server.place()});
    EXPECT_EQ(plain->find(chain), Found(8));
}

TEST_F(RedisServerTest, TheSecondWriterLearnsWhatIsThere) {
    const RedisProcess server;
    TestClient one({"redis://" + server.place()});
    TestClient two({"redis://" + server.place()});
    const ChainPtr chain = make_chain("a", 1);
    const std::string large(150'000, 'x');
    EXPECT_EQ(one->store(chain, 0, value_of(*chain, 0, large)), Stored::kStored);
    EXPECT_EQ(two->store(chain, 0, value_of(*chain, 0, large)), Stored::kWasThere);
    EXPECT_EQ(two->store(chain, 0, value_of(*chain, 0, large + "y")), Stored::kDiffers);
}

TEST_F(RedisServerTest, WhatIsBrokenThereIsRemovedAndStoredAnew) {
    const RedisProcess server;
    TestClient client({"redis://" + server.place()});
    const ChainPtr chain = make_chain("a", 4);
    client->store_all(chain);
    EXPECT_EQ(server.ask("SETRANGE " + name_at(*chain, 1) + " 150 !!!!"),
              ":" + std::to_string(value_of(*chain, 1).size()));
    EXPECT_EQ(server.ask("SET " + name_at(*chain, 2) + " junk"), "+OK");
    EXPECT_EQ(client->load(chain, all_blocks(*chain)).size(), 2U);
    EXPECT_EQ(client->stats().corrupt, 2U);
    EXPECT_EQ(client->store(chain, 1, value_of(*chain, 1)), Stored::kStored);
    EXPECT_EQ(client->store(chain, 2, value_of(*chain, 2)), Stored::kStored);
    expect_all(client, chain);
}

TEST_F(RedisServerTest, AKilledServerIsAMissAndTheOtherGoesOn) {
    RedisProcess first;
    const RedisProcess second;
    TestClient client({"redis://" + first.place(), "redis://" + second.place()});
    const ChainPtr chain = make_chain("a", 160);
    client->store_all(chain);
    const std::size_t kept = std::stoul(second.ask("DBSIZE").substr(1));
    first.kill();
    EXPECT_EQ(client->load(chain, all_blocks(*chain)).size(), kept);
}

TEST_F(RedisServerTest, AClusterKeepsBlocksWhereItsSlotsAre) {
    const RedisPair pair;
    // One of its nodes is enough to know all.
    TestClient client({"redis+cluster://" + pair.first.place()});
    const ChainPtr chain = make_chain("a", 64);
    client->store_all(chain);
    expect_all(client, chain);
    EXPECT_GT(std::stoul(pair.first.ask("DBSIZE").substr(1)), 10U);
    EXPECT_GT(std::stoul(pair.second.ask("DBSIZE").substr(1)), 10U);
    EXPECT_EQ(client->stats().errors, 0U);
}

TEST_F(RedisServerTest, ASlotThatMovesIsFollowedByAskAndThenByMoved) {
    const RedisPair pair;
    TestClient client({"redis+cluster://" + pair.first.place()});
    const ChainPtr chain = make_chain("a", 48);
    client->store_all(chain);
    std::size_t index = 0;  // A block of the first node.
    while (cluster_slot(name_at(*chain, index)) > 8191) ++index;
    const std::string name = name_at(*chain, index);
    const std::string slot = std::to_string(cluster_slot(name));
    const auto id = [](const RedisProcess& server) {
        const std::string text = server.ask_text("CLUSTER MYID");
        return text.substr(0, 40);
    };
    EXPECT_EQ(pair.second.ask("CLUSTER SETSLOT " + slot + " IMPORTING " + id(pair.first)), "+OK");
    EXPECT_EQ(pair.first.ask("CLUSTER SETSLOT " + slot + " MIGRATING " + id(pair.second)), "+OK");
    EXPECT_EQ(pair.first.ask("MIGRATE 127.0.0.1 " + std::to_string(pair.second.port()) + " " +
                             name + " 0 5000"),
              "+OK");
    EXPECT_TRUE(pair.first.ask("GET " + name).starts_with("-ASK"));
    expect_all(client, chain);
    for (const RedisProcess* server : {&pair.second, &pair.first})
        EXPECT_EQ(server->ask("CLUSTER SETSLOT " + slot + " NODE " + id(pair.second)), "+OK");
    EXPECT_TRUE(pair.first.ask("GET " + name).starts_with("-MOVED"));
    expect_all(client, chain);
    EXPECT_EQ(client->store(chain, index, value_of(*chain, index)), Stored::kWasThere);
}

TEST_F(RedisServerTest, ANodeOfAClusterThatIsKilledTakesOnlyItsSlots) {
    RedisPair pair;
    TestClient client({"redis+cluster://" + pair.first.place()});
    const ChainPtr chain = make_chain("a", 64);
    client->store_all(chain);
    const std::size_t kept = std::stoul(pair.first.ask("DBSIZE").substr(1));
    pair.second.kill();
    EXPECT_EQ(client->load(chain, all_blocks(*chain)).size(), kept);
}

}  // namespace
}  // namespace sluice::kvnode
