// What an operator tells a worker of the blocks it keeps, over its port.

#include "port/kv_orders.h"

#include "kv/block_name.h"
#include "port/kv_status.h"
#include "port/load_report.h"
#include "tests/worker/support.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;

class KvOrdersTest : public ::testing::Test {
protected:
    void answer(const std::string& tenant, std::uint32_t number,
                Retention retention = Retention::kChat) {
        port::GenerateRequest asked = request(number, 5 * kBlock + 1, 2);
        asked.kv.tenant = asked.kv.salt = tenant;
        asked.kv.retention = retention;
        FrameReader reader(worker_->port(), asked);
        static_cast<void>(reader.rest());
        ASSERT_TRUE(worker_->wait_until_published());
    }
    port::KvStatus status() {
        const auto status =
            port::parse_kv_status(client_.fetch({.url = worker_->url("/kv/status")}).body);
        EXPECT_TRUE(status.has_value());
        return status.value_or(port::KvStatus{});
    }
    port::KvTierStatus tier(std::string_view name) {
        for (const port::KvTierStatus& tier : status().tiers)
            if (tier.tier == name) return tier;
        ADD_FAILURE() << "no tier " << name;
        return {};
    }
    port::KvTierStatus dram() { return tier("dram"); }
    port::KvTierStatus pool() { return tier("pool"); }
    /// The engine says how its pool stands a moment after it has done something.
    [[nodiscard]] bool pool_comes_to(std::uint64_t entries) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < end)
            if (pool().entries == entries) return true;
        return false;
    }
    /// Of the blocks of `answer(tenant, number)`.
    std::vector<std::string> names(const std::string& tenant, std::uint32_t number) {
        const auto root =
            worker_->thread().call([&] { return worker_->server().engine()->key_root(); });
        std::vector<std::string> names;
        for (const kv::BlockKey& key :
             kv::KeyChain(root, {.shared = tenant}).keys(request(number, 5 * kBlock, 2).input_ids))
            names.push_back(
                kv::to_wire({.tenant = tenant, .retention = Retention::kChat, .key = key}));
        return names;
    }
    HttpAnswer order(const std::string& path, std::string body) {
        return client_.fetch(post(worker_->url(path), std::move(body)));
    }
    port::KvOrderResult result(const HttpAnswer& answer) {
        EXPECT_EQ(answer.status, 200) << answer.body;
        return port::parse_kv_order_result(answer.body).value_or(port::KvOrderResult{});
    }

    port::KvOrderResult drop(const port::KvDropOrder& what) {
        return result(order("/kv/drop", port::to_json(what)));
    }

    void start_with_pool(std::size_t tokens) {
        worker_.emplace(
            TestWorker::Setup{.engine = {.pool_tokens = tokens},
                              .kv = {.dram_bytes = 32 << 20, .forced = kv::ForcedChoice::kLoad}});
    }
    KvOrdersTest() { start_with_pool(65'536); }

    std::optional<TestWorker> worker_;
    TestClient client_;
};

TEST_F(KvOrdersTest, StatusSaysWhatIsWhereAndWhose) {
    answer("acme", 1);
    answer("other", 2);
    const port::KvStatus now = status();
    ASSERT_EQ(now.tiers.size(), 2U);
    EXPECT_EQ(now.tiers[0].tier, "pool");
    EXPECT_EQ(now.tiers[0].entries, 10U);
    EXPECT_EQ(dram().entries, 10U);
    EXPECT_EQ(dram().limit_bytes, 32U << 20);
    EXPECT_GT(dram().bytes, 0U);
    EXPECT_LE(dram().bytes, dram().limit_bytes);
    ASSERT_EQ(dram().holdings.size(), 2U);
    EXPECT_EQ(dram().holdings[0].tenant, "acme");
    EXPECT_EQ(dram().holdings[0].entries, 5U);
}

TEST_F(KvOrdersTest, ATenantBeyondItsBoundPushesOutNobodyElse) {
    answer("acme", 1);
    const std::uint64_t five = dram().bytes;
    const port::KvBoundsOrder bounds{.tenants = {{"greedy", 2 * five}}};
    EXPECT_EQ(order("/kv/bounds", port::to_json(bounds)).status, 200);
    for (std::uint32_t i = 2; i < 10; ++i) answer("greedy", i);
    ASSERT_EQ(dram().holdings.size(), 2U);
    EXPECT_EQ(dram().holdings[0].entries, 5U);
    EXPECT_LE(dram().holdings[1].bytes, 2 * five);
    EXPECT_GE(dram().holdings[1].entries, 8U);
    EXPECT_EQ(order("/kv/bounds", R"({"tenants":{"greedy":0}})").status, 400);
}

TEST_F(KvOrdersTest, WhatIsDroppedIsGoneFromThePoolToo) {
    answer("acme", 1);
    answer("other", 2);
    ASSERT_TRUE(worker_->wait_until_idle());
    EXPECT_EQ(drop({.tenant = "acme"}).done, 10U);
    EXPECT_EQ(dram().entries, 5U);
    EXPECT_TRUE(pool_comes_to(5));
    EXPECT_EQ(drop({.tenant = "other"}).done, 10U);
    EXPECT_TRUE(pool_comes_to(0));
    EXPECT_EQ(order("/kv/drop", "{}").status, 400);
    EXPECT_EQ(order("/kv/drop", "nonsense").status, 400);
}

TEST_F(KvOrdersTest, ATenantThatNobodyKnowsLosesNobodyABlock) {
    answer("acme", 1);
    ASSERT_TRUE(worker_->wait_until_idle());
    EXPECT_EQ(drop({.tenant = "nobody"}), port::KvOrderResult{});
    EXPECT_EQ(dram().entries, 5U);
    EXPECT_TRUE(pool_comes_to(5));
}

TEST_F(KvOrdersTest, AClassIsDroppedAlone) {
    answer("acme", 1, Retention::kChat);
    answer("acme", 2, Retention::kAgent);
    ASSERT_TRUE(worker_->wait_until_idle());
    EXPECT_EQ(drop({.tenant = "acme", .retention = Retention::kAgent}).done, 10U);
    EXPECT_EQ(dram().entries, 5U);
    EXPECT_TRUE(pool_comes_to(5));
    EXPECT_EQ(drop({.retention = Retention::kChat}).done, 10U);
    EXPECT_TRUE(pool_comes_to(0));
}

TEST_F(KvOrdersTest, ABlockThatIsDroppedByNameTakesNoOtherAlong) {
    answer("acme", 1);
    ASSERT_TRUE(worker_->wait_until_idle());
    EXPECT_EQ(drop({.name = names("acme", 1).back()}).done, 2U);
    EXPECT_EQ(dram().entries, 4U);
    EXPECT_TRUE(pool_comes_to(4));
    EXPECT_EQ(drop({.name = "kv:acme:chat:nothing"}).done, 0U);
    EXPECT_TRUE(pool_comes_to(4));
}

// Blocks that came from elsewhere are somebody's, too.
TEST_F(KvOrdersTest, WhatCameFromMemoryIsDroppedWithItsTenant) {
    start_with_pool(7 * kBlock);
    answer("acme", 1);
    answer("other", 2);
    answer("acme", 1);
    EXPECT_GT(dram().hits, 0U);
    ASSERT_TRUE(worker_->wait_until_idle());
    static_cast<void>(drop({.tenant = "acme"}));
    static_cast<void>(drop({.tenant = "other"}));
    EXPECT_TRUE(pool_comes_to(0));
}

TEST_F(KvOrdersTest, StatusCountsWhatThePoolHadAndHadNot) {
    answer("acme", 1);
    EXPECT_EQ(pool().hits, 0U);
    EXPECT_EQ(pool().misses, 5U);
    answer("acme", 1);
    EXPECT_EQ(pool().hits, 5U);
    EXPECT_EQ(pool().misses, 5U);
}

TEST_F(KvOrdersTest, WebPagesOrderNothing) {
    net::ClientRequest page = post(worker_->url("/kv/drop"), R"({"class":"chat"})");
    page.headers.set("Origin", "http://page");
    EXPECT_EQ(client_.fetch(page).status, 403);
}

TEST_F(KvOrdersTest, PinsAreLeases) {
    answer("acme", 1);
    port::KvPinOrder pin{.names = names("acme", 1), .seconds = 600};
    pin.names.emplace_back("kv:acme:chat:nothing");
    const port::KvOrderResult pinned = result(order("/kv/pin", port::to_json(pin)));
    EXPECT_EQ(pinned.done, 5U);
    EXPECT_EQ(pinned.failed, 1U);
    EXPECT_EQ(status().pinned, 5U);
    pin.seconds = 0;
    static_cast<void>(result(order("/kv/pin", port::to_json(pin))));
    EXPECT_EQ(status().pinned, 0U);
}

TEST_F(KvOrdersTest, VerifyReadsEverything) {
    answer("acme", 1);
    const port::KvOrderResult verified = result(order("/kv/verify", ""));
    EXPECT_EQ(verified.done, 5U);
    EXPECT_EQ(verified.failed, 0U);
    EXPECT_GT(verified.bytes, 0U);
}

TEST_F(KvOrdersTest, NodesAreThoseOfTheLatestEpoch) {
    const auto tell = [&](std::uint64_t epoch, std::vector<std::string> nodes) {
        return order("/kv/nodes",
                     port::to_json(port::KvNodesOrder{.epoch = epoch, .nodes = std::move(nodes)}))
            .status;
    };
    const auto load = [&] {
        return *port::parse_load_report(client_.fetch({.url = worker_->url("/ready")}).body);
    };
    const auto epoch = [&] { return load().kv_epoch; };
    EXPECT_EQ(epoch(), 0U);
    EXPECT_EQ(load().kv_node_token_ns, 0U);
    EXPECT_GT(load().kv_peer_token_ns, 0U);
    EXPECT_EQ(tell(3, {"redis://127.0.0.1:1", "redis://127.0.0.1:2"}), 200);
    EXPECT_EQ(epoch(), 3U);
    EXPECT_GT(load().kv_node_token_ns, 0U);
    EXPECT_EQ(status().stores.size(), 2U);
    EXPECT_EQ(tell(3, {"redis://127.0.0.1:1", "redis://127.0.0.1:2"}), 200);  // Said twice.
    EXPECT_EQ(tell(2, {}), 409);
    EXPECT_EQ(tell(4, {"ftp://127.0.0.1"}), 400);
    EXPECT_EQ(epoch(), 3U);
    EXPECT_EQ(tell(5, {}), 200);
    EXPECT_TRUE(status().stores.empty());
    answer("acme", 1);  // Nodes that never answered, and are gone, hold nobody up.
}

}  // namespace
}  // namespace sluice::worker
