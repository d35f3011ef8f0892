// A model whose state has two components, rows and a state, in cache nodes as they are: our own engine
// has rows alone. Sizes are DeepInfer's: 891 bytes of rows a token, a window of 1.42 MB at multiples of
// 128 tokens.

#include "kv/usable_prefix.h"
#include "kvnode/node_cluster.h"
#include "tests/kvnode/support.h"
#include "tests/kvnode/test_node.h"

namespace sluice::kvnode {
namespace {

using namespace std::chrono_literals;
using testing::TestNode;

constexpr std::size_t kQuantum = 128;
constexpr std::size_t kParts = 10;
constexpr std::size_t kPromptTokens = kParts * kQuantum + 50;

const std::vector<kv::Component> kComponents{
    {.name = "rows", .kind = kv::ComponentKind::kRows, .quantum = kQuantum},
    {.name = "window", .kind = kv::ComponentKind::kState, .quantum = kQuantum}};

std::size_t bytes_of(std::size_t component) { return component == 0 ? kQuantum * 891 : 1'420'000; }

std::vector<TokenId> prompt() {
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < kPromptTokens; ++i)
        tokens.push_back(static_cast<TokenId>(i * 7 % 1'000));
    return tokens;
}

/// Of one component: named by its root, so that equal tokens have a block of each.
ChainPtr chain_of(std::size_t component) {
    const kv::BlockKey root = kv::root_key({.fingerprint = "model",
                                            .numerics_id = "n",
                                            .component = kComponents[component].name,
                                            .layout = "l",
                                            .dtype = "fp8",
                                            .block_tokens = kQuantum});
    Chain chain{.tenant = "acme", .keys = kv::chain_keys(root, prompt(), kQuantum)};
    return std::make_shared<const Chain>(std::move(chain));
}

std::string value_of(std::size_t component, const Chain& chain, std::size_t index) {
    const kv::BlockHeader header{.key = chain.keys[index],
                                 .parent = index > 0 ? chain.keys[index - 1] : kv::BlockKey{},
                                 .component = kComponents[component].name,
                                 .tokens = kQuantum,
                                 .producer = sha256("producer"),
                                 .payload_checksum = {}};
    return kv::encode_block(header, bytes_of(component), [&](std::span<std::byte> out) {
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<std::byte>(i * (component + 3) + index);
    });
}

class ComponentsTest : public ::testing::Test {
protected:
    ComponentsTest() { start(); }
    ~ComponentsTest() override { stop(); }

    void start() {
        node_ = std::make_unique<TestNode>(TestNode::Options{.ssd_dir = folder_.path().string()});
        loop_.call([&] {
            cluster_ = std::make_unique<NodeCluster>(
                loop_.loop(), NodeCluster::Options{.connect_time = 2s, .probe_pause = 20ms});
            EXPECT_TRUE(
                cluster_->set_members(1, {"redis://127.0.0.1:" + std::to_string(node_->port())}));
        });
    }
    void stop() {
        loop_.call([&] { cluster_.reset(); });
        node_->sync();
        node_.reset();
    }
    testing::StoreCalls store() { return {loop_, *cluster_}; }

    void store_all() {
        for (std::size_t component = 0; component < 2; ++component)
            for (std::size_t i = 0; i < kParts; ++i)
                EXPECT_EQ(store().store(chains_[component], i,
                                        value_of(component, *chains_[component], i)),
                          Stored::kStored);
    }
    void lose(std::size_t component, std::size_t index) {
        const auto name = kv::to_wire(name_of(*chains_[component], {.index = index}));
        EXPECT_EQ(testing::TestClient(*node_).ask({"DEL", name}), ":1\r\n");
    }
    kv::UsablePrefix prefix() {
        std::vector<kv::StoredParts> stored;
        for (const ChainPtr& chain : chains_) {
            kv::StoredParts& parts = stored.emplace_back();
            for (const auto& found : store().find(chain)) parts.push_back(found.has_value());
        }
        return kv::usable_prefix(kComponents, stored, kPromptTokens);
    }
    /// What the prefix needs is there, each part with its own bytes.
    void expect_loads(const kv::UsablePrefix& prefix) {
        for (std::size_t component = 0; component < 2; ++component) {
            const auto values =
                store().load(chains_[component], testing::blocks(prefix.load[component]));
            EXPECT_EQ(values.size(), prefix.load[component].size());
            for (const auto& [index, value] : values)
                EXPECT_TRUE(value == value_of(component, *chains_[component], index));
        }
    }

    kv::testing::Folder folder_;
    std::unique_ptr<TestNode> node_;
    testing::LoopThread loop_;
    std::unique_ptr<NodeCluster> cluster_;
    const std::vector<ChainPtr> chains_{chain_of(0), chain_of(1)};
};

TEST_F(ComponentsTest, AHitNeedsAllRowsAndOneStateAlsoAfterARestart) {
    EXPECT_EQ(prefix().tokens, 0U);
    store_all();
    for (int round = 0; round < 2; ++round) {
        const kv::UsablePrefix all = prefix();
        EXPECT_EQ(all.tokens, kParts * kQuantum);
        EXPECT_EQ(all.computed(), 0U);
        EXPECT_EQ(all.load[0].size(), kParts);
        EXPECT_EQ(all.load[1], (std::vector<std::size_t>{kParts - 1}));
        expect_loads(all);
        stop();
        start();
    }
}

TEST_F(ComponentsTest, WithoutItsLastStateTheHitEndsAtTheOneBefore) {
    store_all();
    lose(1, kParts - 1);
    const kv::UsablePrefix shorter = prefix();
    EXPECT_EQ(shorter.tokens, (kParts - 1) * kQuantum);
    EXPECT_EQ(shorter.load[1], (std::vector<std::size_t>{kParts - 2}));
    expect_loads(shorter);
}

TEST_F(ComponentsTest, AHoleInTheRowsIsComputedFromTheStateBeforeIt) {
    store_all();
    lose(0, 4);
    const kv::UsablePrefix with_hole = prefix();
    EXPECT_EQ(with_hole.tokens, kParts * kQuantum);
    EXPECT_EQ(with_hole.compute, (std::vector<kv::TokenRange>{{4 * kQuantum, 5 * kQuantum}}));
    EXPECT_EQ(with_hole.load[1], (std::vector<std::size_t>{3, kParts - 1}));
    expect_loads(with_hole);
}

// Equal tokens, another component: neither is ever taken for the other.
TEST_F(ComponentsTest, RowsWithoutStatesAreNoHit) {
    for (std::size_t i = 0; i < kParts; ++i)
        EXPECT_EQ(store().store(chains_[0], i, value_of(0, *chains_[0], i)), Stored::kStored);
    EXPECT_EQ(prefix().tokens, 0U);
}

}  // namespace
}  // namespace sluice::kvnode
