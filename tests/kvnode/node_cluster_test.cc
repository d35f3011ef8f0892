#include "kvnode/node_cluster.h"

#include <deque>
#include <set>
#include <thread>

#include "tests/kvnode/fake_node.h"
#include "tests/kvnode/support.h"

namespace sluice::kvnode {
namespace {

using namespace std::chrono_literals;
using testing::after;
using testing::all_blocks;
using testing::blocks;
using testing::FakeNode;
using testing::Found;
using testing::make_chain;
using testing::soon;
using testing::value_of;
using testing::Values;

using Fault = FakeNode::Fault;
using kv::Retention;

/// Some nodes, and a worker's view of them.
class TestCluster {
public:
    explicit TestCluster(std::size_t nodes_now, NodeCluster::Options options = quick()) {
        for (std::size_t i = 0; i < nodes_now; ++i) nodes.emplace_back();
        loop.call([&] { cluster = std::make_unique<NodeCluster>(loop.loop(), options); });
        join(nodes_now);
    }
    ~TestCluster() {
        loop.call([&] { cluster.reset(); });
    }

    static NodeCluster::Options quick() {
        NodeCluster::Options options;
        options.connect_time = 10s;
        options.probe_pause = 1ms;
        return options;
    }

    /// From now on the first `count` nodes are members.
    void join(std::size_t count) {
        while (nodes.size() < count) nodes.emplace_back();
        std::vector<std::string> urls;
        for (std::size_t i = 0; i < count; ++i) urls.push_back(nodes[i].url());
        ++epoch;
        loop.call([&] { EXPECT_TRUE(cluster->set_members(epoch, urls).has_value()); });
    }

    /// Blocks that lie at all nodes.
    [[nodiscard]] std::size_t held() {
        std::size_t sum = 0;
        for (FakeNode& node : nodes) sum += node.data().size();
        return sum;
    }
    void set_fault(Fault fault) {
        for (FakeNode& node : nodes) node.fault = fault;
    }

    testing::StoreCalls* operator->() {
        calls.emplace(loop, *cluster);
        return &*calls;
    }

    std::deque<FakeNode> nodes;
    std::uint64_t epoch = 0;
    testing::LoopThread loop;
    std::unique_ptr<NodeCluster> cluster;
    std::optional<testing::StoreCalls> calls;
};

/// Values of a chain as they must be.
void expect_right(const Chain& chain, const Values& values) {
    for (const auto& [index, value] : values) EXPECT_EQ(value, value_of(chain, index));
}

TEST(NodeClusterTest, WhatIsStoredIsFoundAndLoaded) {
    TestCluster cluster(3);
    const ChainPtr chain = make_chain("a", 480);
    cluster->store_all(chain);
    EXPECT_EQ(cluster.held(), 480U);
    EXPECT_EQ(cluster->find(chain), Found(480, Retention::kChat));
    const Values values = cluster->load(chain, all_blocks(*chain));
    EXPECT_EQ(values.size(), 480U);
    expect_right(*chain, values);
    const StoreStats stats = cluster->stats();
    EXPECT_EQ(stats.stored, 480U);
    EXPECT_EQ(stats.hits, 480U);
    EXPECT_EQ(stats.misses, 0U);
    EXPECT_EQ(stats.bytes_read, stats.bytes_written);
    for (const StoreStats& one : cluster.loop.call([&] { return cluster.cluster->stats(); })) {
        EXPECT_GT(one.round_trip.count(), 0);
        EXPECT_GT(one.bytes_per_second, 0);
    }
}

TEST(NodeClusterTest, SixteenBlocksInARowLieOnOneNode) {
    TestCluster cluster(3);
    const ChainPtr chain = make_chain("a", 160);
    cluster->store_all(chain);
    std::set<std::size_t> used;
    for (std::size_t extent = 0; extent < 10; ++extent) {
        std::set<std::size_t> of_extent;
        for (std::size_t i = 0; i < 16; ++i) {
            const std::string name = kv::to_wire(
                name_of(*chain, {.index = extent * 16 + i, .retention = Retention::kChat}));
            for (std::size_t node = 0; node < 3; ++node)
                if (cluster.nodes[node].data().contains(name)) of_extent.insert(node);
        }
        EXPECT_EQ(of_extent.size(), 1U);
        used.insert(of_extent.begin(), of_extent.end());
    }
    EXPECT_GT(used.size(), 1U);
}

TEST(NodeClusterTest, NamesAndLivesAreThoseOfTheClass) {
    TestCluster cluster(1);
    const ChainPtr agent = make_chain("a", 1, Retention::kAgent);
    EXPECT_EQ(cluster->store(agent, 0, value_of(*agent, 0)), Stored::kStored);
    const std::string name = "kv:acme:agent:" + to_hex(agent->keys[0]);
    EXPECT_TRUE(cluster.nodes[0].data().contains(name));
    const auto set = std::vector<std::string>{"SET", name, "", "NX", "EX", "259200"};
    cluster->touch(agent, blocks({0}, Retention::kAgent));
    cluster->find(agent);  // On the same connection, behind it.
    const auto expire = std::vector<std::string>{"EXPIRE", name, "259200"};
    const auto requests = cluster.nodes[0].requests();
    EXPECT_NE(std::ranges::find(requests, set), requests.end());
    EXPECT_NE(std::ranges::find(requests, expire), requests.end());
}

TEST(NodeClusterTest, TheOwnClassIsLookedForFirstAndThenTheOther) {
    TestCluster cluster(2);
    const ChainPtr chat = make_chain("a", 3);
    const ChainPtr agent = make_chain("a", 3, Retention::kAgent);
    EXPECT_EQ(cluster->store(chat, 0, value_of(*chat, 0)), Stored::kStored);
    EXPECT_EQ(cluster->store(agent, 0, value_of(*agent, 0)), Stored::kStored);
    EXPECT_EQ(cluster->store(agent, 2, value_of(*agent, 2)), Stored::kStored);
    EXPECT_EQ(cluster->find(chat), (Found{Retention::kChat, std::nullopt, Retention::kAgent}));
    EXPECT_EQ(cluster->find(agent), (Found{Retention::kAgent, std::nullopt, Retention::kAgent}));
    EXPECT_EQ(cluster->find(make_chain("a", 3, Retention::kNone)),
              (Found{Retention::kAgent, std::nullopt, Retention::kAgent}));
    EXPECT_EQ(cluster->find(make_chain("a", 3, Retention::kChat, "other")), Found(3));
    const ChainPtr none = make_chain("b", 1, Retention::kNone);
    EXPECT_EQ(cluster->store(none, 0, value_of(*none, 0)), Stored::kFailed);
}

TEST(NodeClusterTest, WithoutMembersEverythingIsMissing) {
    TestCluster cluster(0);
    const ChainPtr chain = make_chain("a", 3);
    EXPECT_EQ(cluster->find(chain), Found(3));
    EXPECT_TRUE(cluster->load(chain, all_blocks(*chain)).empty());
    EXPECT_EQ(cluster->store(chain, 0, value_of(*chain, 0)), Stored::kFailed);
}

TEST(NodeClusterTest, OneThatHasNoRoomSaysSoAndOneThatLoadsMayHaveSomeLater) {
    TestCluster cluster(1);
    const ChainPtr chain = make_chain("a", 2);
    cluster.nodes[0].fault = FakeNode::Fault::kFull;
    EXPECT_EQ(cluster->store(chain, 0, value_of(*chain, 0)), Stored::kRefused);
    cluster.nodes[0].stop();
    EXPECT_EQ(cluster->store(chain, 1, value_of(*chain, 1)), Stored::kFailed);
}

TEST(NodeClusterTest, GrowthPullsThroughAndShrinkingFindsWhatIsLeft) {
    TestCluster cluster(3);
    std::vector<ChainPtr> chains;
    for (int i = 0; i < 40; ++i) chains.push_back(make_chain(std::to_string(i), 16));
    for (const ChainPtr& chain : chains) cluster->store_all(chain);
    cluster.join(4);
    for (const ChainPtr& chain : chains) {
        // Nothing is lost by a join: what the newcomer owns is found where it was.
        EXPECT_EQ(cluster->find(chain), Found(16, Retention::kChat));
        const Values values = cluster->load(chain, all_blocks(*chain));
        EXPECT_EQ(values.size(), 16U);
        expect_right(*chain, values);
    }
    const std::string newcomer = cluster.nodes[3].url();
    const std::size_t moved = cluster.loop.call([&] {
        const kv::Placement& placement = cluster.cluster->placement();
        return 16 * static_cast<std::size_t>(std::ranges::count_if(chains, [&](const auto& chain) {
                   const auto owner = placement.owners(chain->keys.front()).front();
                   return placement.members()[owner] == newcomer;
               }));
    });
    EXPECT_GT(moved, 0U);
    EXPECT_TRUE(cluster->wait_until([&](const StoreStats& stats) {
        return stats.pulled == moved && cluster.nodes[3].data().size() == moved;
    }));
    // And now it is at its new owner: nobody else is asked.
    const auto before = cluster->stats();
    for (const ChainPtr& chain : chains)
        EXPECT_EQ(cluster->load(chain, all_blocks(*chain)).size(), 16U);
    EXPECT_EQ(cluster->stats().misses, before.misses);
    // The newcomer goes again; what it had taken over is still where it was.
    cluster.join(3);
    for (const ChainPtr& chain : chains)
        EXPECT_EQ(cluster->load(chain, all_blocks(*chain)).size(), 16U);
    EXPECT_EQ(cluster->stats().misses, 0U);  // Of those that are left.
}

TEST(NodeClusterTest, ANodeThatLeavesTakesOnlyItsOwnExtents) {
    TestCluster cluster(4);
    std::vector<ChainPtr> chains;
    for (int i = 0; i < 40; ++i) chains.push_back(make_chain(std::to_string(i), 16));
    for (const ChainPtr& chain : chains) cluster->store_all(chain);
    const std::size_t of_the_fourth = cluster.nodes[3].data().size();
    cluster.join(3);
    std::size_t found = 0;
    for (const ChainPtr& chain : chains) found += cluster->load(chain, all_blocks(*chain)).size();
    EXPECT_EQ(found, 640 - of_the_fourth);
}

TEST(NodeClusterTest, OlderMembershipsAndBrokenUrlsChangeNothing) {
    TestCluster cluster(2);
    cluster.loop.call([&] {
        NodeCluster& nodes = *cluster.cluster;
        const std::vector<std::string> now{cluster.nodes[0].url(), cluster.nodes[1].url()};
        ASSERT_TRUE(nodes.set_members(9, now).has_value());
        EXPECT_TRUE(nodes.set_members(9, now).has_value());  // The same once more.
        EXPECT_EQ(nodes.set_members(9, {now[0]}).error().code(), ErrorCode::kOutOfRange);
        EXPECT_EQ(nodes.set_members(8, now).error().code(), ErrorCode::kOutOfRange);
        EXPECT_EQ(nodes.set_members(10, {now[0], "redis://"}).error().code(), ErrorCode::kInvalid);
        EXPECT_EQ(nodes.set_members(10, {"dir:///x"}).error().code(), ErrorCode::kInvalid);
        const std::vector<std::string> many(limits::kKvStores + 1, "redis://a:1");
        EXPECT_TRUE(nodes.set_members(10, many).has_value());  // One node, many times.
        std::vector<std::string> different;
        for (std::size_t i = 0; i <= limits::kKvStores; ++i)
            different.push_back("redis://127.0.0.1:" + std::to_string(1000 + i));
        EXPECT_EQ(nodes.set_members(11, different).error().code(), ErrorCode::kOutOfRange);
        EXPECT_EQ(nodes.placement().epoch(), 10U);
    });
}

TEST(NodeClusterTest, MembersThatStayKeepTheirConnections) {
    TestCluster cluster(2);
    const ChainPtr chain = make_chain("a", 32);
    cluster->store_all(chain);
    cluster->load(chain, all_blocks(*chain));
    const auto both = [&] {
        return cluster.nodes[0].connections() + cluster.nodes[1].connections();
    };
    while (both() < 6) std::this_thread::yield();  // Three each, of which some are idle so far.
    cluster.join(3);
    cluster->load(chain, all_blocks(*chain));
    EXPECT_EQ(both(), 6U);
}

TEST(NodeClusterTest, TwoWritersOfOneBlockStoreItOnce) {
    TestCluster one(1);
    const ChainPtr chain = make_chain("a", 1);
    EXPECT_EQ(one->store(chain, 0, value_of(*chain, 0)), Stored::kStored);
    EXPECT_EQ(one->store(chain, 0, value_of(*chain, 0)), Stored::kWasThere);
    EXPECT_EQ(one.nodes[0].count("GETRANGE"), 1U);
    EXPECT_EQ(one->stats().stored, 1U);
}

TEST(NodeClusterTest, OtherBitsUnderTheSameKeyAreNoticed) {
    TestCluster cluster(1);
    const ChainPtr chain = make_chain("a", 1);
    const std::string large(100'000, 'x');
    EXPECT_EQ(cluster->store(chain, 0, value_of(*chain, 0, large)), Stored::kStored);
    EXPECT_EQ(cluster->store(chain, 0, value_of(*chain, 0, large + "y")), Stored::kDiffers);
    EXPECT_EQ(cluster->stats().differs, 1U);
    EXPECT_EQ(cluster->load(chain, blocks({0})).at(0), value_of(*chain, 0, large));
}

TEST(NodeClusterTest, ABrokenValueIsReplacedAndNoDifference) {
    TestCluster cluster(1);
    const ChainPtr chain = make_chain("a", 1);
    const std::string name = kv::to_wire(name_of(*chain, {}));
    const std::string right = value_of(*chain, 0);
    std::string other_payload = value_of(*chain, 0, "other payload");
    other_payload.back() ^= 1;
    for (const std::string& broken : {std::string("junk"), right.substr(0, 100), other_payload}) {
        cluster.nodes[0].put(name, broken);
        EXPECT_EQ(cluster->store(chain, 0, right), Stored::kStored);
        EXPECT_EQ(cluster->load(chain, blocks({0})).at(0), right);
    }
    EXPECT_EQ(cluster->stats().corrupt, 3U);
    EXPECT_EQ(cluster->stats().differs, 0U);
}

TEST(NodeClusterTest, NoValueIsStoredUnderANameThatIsNotItsOwn) {
    TestCluster cluster(1);
    const ChainPtr chain = make_chain("a", 2);
    EXPECT_EQ(cluster->store(chain, 1, value_of(*chain, 0)), Stored::kFailed);
    EXPECT_EQ(cluster->store(chain, 0, "junk"), Stored::kFailed);
    EXPECT_EQ(cluster.held(), 0U);
}

// ---- Faults: never a wrong block, always an answer -------------------------------------------------

TEST(NodeClusterFaultTest, FlippedBytesAreCountedRemovedAndMissing) {
    TestCluster cluster(2);
    const ChainPtr chain = make_chain("a", 32);
    cluster->store_all(chain);
    cluster.set_fault(Fault::kFlip);
    EXPECT_TRUE(cluster->load(chain, all_blocks(*chain)).empty());
    EXPECT_EQ(cluster->stats().corrupt, 32U);
    cluster.set_fault(Fault::kNone);
    EXPECT_TRUE(cluster->wait_until([&](const StoreStats&) { return cluster.held() == 0; }));
    cluster->store_all(chain);
    EXPECT_EQ(cluster->load(chain, all_blocks(*chain)).size(), 32U);
}

TEST(NodeClusterFaultTest, AnotherKeysReplyIsNeverTaken) {
    TestCluster cluster(1);
    const ChainPtr chain = make_chain("a", 10);
    cluster->store_all(chain);
    cluster.set_fault(Fault::kOtherKey);
    expect_right(*chain, cluster->load(chain, all_blocks(*chain)));
    EXPECT_GT(cluster->stats().corrupt, 0U);
}

TEST(NodeClusterFaultTest, RepliesThatAreCutAreMissing) {
    TestCluster cluster(2);
    const ChainPtr chain = make_chain("a", 32);
    cluster->store_all(chain);
    cluster.set_fault(Fault::kCut);
    EXPECT_TRUE(cluster->load(chain, all_blocks(*chain)).empty());
    EXPECT_GT(cluster->stats().errors, 0U);
    cluster.set_fault(Fault::kNone);
    while (cluster->load(chain, all_blocks(*chain)).size() != 32U) std::this_thread::yield();
}

TEST(NodeClusterFaultTest, ANodeThatHangsIsAMissByTheDeadline) {
    TestCluster cluster(2);
    const ChainPtr chain = make_chain("a", 64);
    cluster->store_all(chain);
    cluster.nodes[0].fault = Fault::kHang;
    const std::size_t of_the_other = cluster.nodes[1].data().size();
    const Values values = cluster->load(chain, all_blocks(*chain), after(1500ms));
    EXPECT_EQ(values.size(), of_the_other);
    expect_right(*chain, values);
    EXPECT_EQ(cluster->stats().timeouts > 0, of_the_other < 64);
}

TEST(NodeClusterFaultTest, ANodeThatNeverAnswersIsSoonAMissAtOnce) {
    NodeCluster::Options options = TestCluster::quick();
    options.connect_time = 200ms;
    TestCluster cluster(1, options);
    cluster.set_fault(Fault::kSilent);
    const ChainPtr chain = make_chain("a", 3);
    EXPECT_EQ(cluster->find(chain, after(50ms)), Found(3));
    EXPECT_TRUE(cluster->load(chain, all_blocks(*chain), after(50ms)).empty());
    EXPECT_TRUE(cluster->wait_until([](const StoreStats& stats) { return !stats.up; }));
    EXPECT_EQ(cluster->find(chain), Found(3));  // A far deadline, and no wait for it.
    cluster.set_fault(Fault::kNone);
    EXPECT_TRUE(cluster->wait_until([](const StoreStats& stats) { return stats.up; }));
}

TEST(NodeClusterFaultTest, ErrorsAndNonsenseAreMisses) {
    TestCluster cluster(1);
    const ChainPtr chain = make_chain("a", 3);
    cluster->store_all(chain);
    cluster.set_fault(Fault::kLoading);
    EXPECT_TRUE(cluster->load(chain, all_blocks(*chain)).empty());
    EXPECT_EQ(cluster->stats().errors, 3U);
    cluster.set_fault(Fault::kGarbage);
    EXPECT_TRUE(cluster->load(chain, all_blocks(*chain)).empty());
}

TEST(NodeClusterFaultTest, ANodeThatIsKilledIsAMissAndTheOthersGoOn) {
    TestCluster cluster(3);
    const ChainPtr chain = make_chain("a", 320);
    cluster->store_all(chain);
    cluster.nodes[1].stop();
    const std::size_t lost = cluster.nodes[1].data().size();
    EXPECT_GT(lost, 0U);
    const Values values = cluster->load(chain, all_blocks(*chain));
    EXPECT_EQ(values.size(), 320 - lost);
    expect_right(*chain, values);
    const Found found = cluster->find(chain);
    EXPECT_EQ(std::ranges::count_if(found, [](const auto& one) { return one.has_value(); }),
              static_cast<std::ptrdiff_t>(320 - lost));
}

TEST(NodeClusterFaultTest, WithTwoReplicasNothingIsLostByOneNode) {
    NodeCluster::Options options = TestCluster::quick();
    options.replicas = 2;
    TestCluster cluster(3, options);
    const ChainPtr chain = make_chain("a", 160);
    cluster->store_all(chain);
    EXPECT_EQ(cluster.held(), 320U);
    cluster.nodes[2].stop();
    EXPECT_EQ(cluster->load(chain, all_blocks(*chain)).size(), 160U);
    EXPECT_EQ(cluster->find(chain), Found(160, Retention::kChat));
}

TEST(NodeClusterFaultTest, AReplicaThatHangsLeavesTimeForTheOther) {
    NodeCluster::Options options = TestCluster::quick();
    options.replicas = 2;
    TestCluster cluster(2, options);
    const ChainPtr chain = make_chain("a", 32);
    cluster->store_all(chain);
    cluster.nodes[0].fault = Fault::kHang;
    const Values values = cluster->load(chain, all_blocks(*chain), after(2000ms));
    EXPECT_EQ(values.size(), 32U);
    expect_right(*chain, values);
}

TEST(NodeClusterFaultTest, ALoadEndsWithItsHandleAndTheClusterWithItsOwn) {
    TestCluster cluster(2);
    const ChainPtr chain = make_chain("a", 64);
    cluster->store_all(chain);
    cluster.set_fault(Fault::kHang);
    std::unique_ptr<Load> kept;
    std::unique_ptr<Load> dropped;
    cluster.loop.call([&] {
        const auto never = [](auto&&...) { FAIL(); };
        NodeCluster& nodes = *cluster.cluster;
        dropped = nodes.load(chain, all_blocks(*chain), after(30ms), never, never);
        dropped.reset();
        kept = nodes.load(chain, all_blocks(*chain), after(30ms), never, never);
        nodes.find(chain, after(30ms), never);
        nodes.store(chain, 0, kv::SharedBytes::own(value_of(*chain, 0)), never);
        cluster.cluster.reset();
    });
    testing::Signal later;  // Whoever would call does so before.
    net::Timer timer;
    cluster.loop.call([&] { timer = cluster.loop.loop().call_after(50ms, [&] { later.set(); }); });
    EXPECT_TRUE(later.wait());
    cluster.loop.call([&] {
        kept.reset();
        timer.cancel();
    });
}

TEST(NodeClusterFaultTest, MembersThatGoWhileTheyAreAskedStillAnswer) {
    TestCluster cluster(3);
    const ChainPtr chain = make_chain("a", 160);
    cluster->store_all(chain);
    testing::Signal done;
    std::size_t values = 0;
    std::unique_ptr<Load> handle;
    cluster.loop.call([&] {
        handle = cluster.cluster->load(
            chain, all_blocks(*chain), soon(),
            [&](std::size_t, const kv::SharedBytes&) { ++values; }, [&] { done.set(); });
        EXPECT_TRUE(cluster.cluster->set_members(99, {cluster.nodes[0].url()}).has_value());
    });
    EXPECT_TRUE(done.wait());
    EXPECT_EQ(values, 160U);
    cluster.loop.call([&] { handle.reset(); });
}

}  // namespace
}  // namespace sluice::kvnode
