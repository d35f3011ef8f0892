#include "sim/shared_cache.h"

#include <vector>

#include "sim/lru_order.h"
#include "sim/s3_fifo_order.h"

namespace sluice::sim {
namespace {

using Keys = std::vector<BlockKey>;
using Gone = std::vector<std::ptrdiff_t>;

constexpr auto kAll = {CachePolicy::kWorth, CachePolicy::kAttention, CachePolicy::kLru,
                       CachePolicy::kS3Fifo};

Keys chain(BlockKey text, std::size_t blocks) {
    Keys keys;
    for (std::size_t i = 0; i < blocks; ++i) keys.push_back(text * 1'000 + i);
    return keys;
}

TEST(SharedCacheTest, PoliciesHaveNames) {
    for (const CachePolicy policy : kAll) EXPECT_EQ(parse_cache_policy(to_string(policy)), policy);
    EXPECT_FALSE(parse_cache_policy("fifo"));
}

TEST(SharedCacheTest, WithAnyPolicyWhatIsStoredIsFoundWithinTheLimit) {
    for (const CachePolicy policy : kAll) {
        SharedCache cache({.policy = policy, .blocks = 8});
        EXPECT_EQ(cache.match(chain(1, 3)), 0U);
        cache.store(chain(1, 3));
        EXPECT_EQ(cache.match(chain(1, 5)), 3U);
        EXPECT_EQ(cache.count(chain(1, 5)), 3U);
        EXPECT_EQ(cache.evictions(), 0U);
        for (BlockKey text = 2; text < 20; ++text) cache.store(chain(text, 3));
        std::uint32_t here = 0;
        for (BlockKey text = 1; text < 20; ++text) here += cache.count(chain(text, 3));
        EXPECT_EQ(here, 8U) << to_string(policy);
    }
}

TEST(SharedCacheTest, WithAnyPolicyAChainGoesFromItsTail) {
    for (const CachePolicy policy : kAll) {
        SharedCache cache({.policy = policy, .blocks = 12});
        for (BlockKey text = 1; text < 30; ++text) {
            const Keys keys = chain(1 + text % 7, 4);
            cache.use(keys);
            cache.store(keys);
            for (BlockKey each = 1; each < 8; ++each)
                EXPECT_EQ(cache.match(chain(each, 4)), cache.count(chain(each, 4)))
                    << to_string(policy);
        }
        EXPECT_GT(cache.evictions(), 0U);
    }
}

TEST(SharedCacheTest, AChainLongerThanTheCacheKeepsItsStart) {
    for (const CachePolicy policy : kAll) {
        SharedCache cache({.policy = policy, .blocks = 4});
        cache.store(chain(1, 4));
        cache.store(chain(1, 5));
        EXPECT_EQ(cache.match(chain(1, 5)), 4U) << to_string(policy);
    }
}

TEST(SharedCacheTest, WhatIsUsedOutlivesWhatIsNot) {
    for (const CachePolicy policy :
         {CachePolicy::kWorth, CachePolicy::kLru, CachePolicy::kS3Fifo}) {
        SharedCache cache({.policy = policy, .blocks = 20});
        cache.store(chain(1, 2));
        cache.store(chain(2, 2));
        for (BlockKey text = 3; text < 20; ++text) {
            cache.use(chain(1, 2));
            cache.store(chain(text, 2));
        }
        EXPECT_EQ(cache.match(chain(1, 2)), 2U) << to_string(policy);
        EXPECT_EQ(cache.match(chain(2, 2)), 0U) << to_string(policy);
    }
}

TEST(SharedCacheTest, FarBlocksAreWorthMoreWhereAttentionCounts) {
    SharedCache cache(
        {.policy = CachePolicy::kAttention, .blocks = 24, .attention_tokens = 1'000.0});
    cache.store(chain(1, 20));
    for (BlockKey text = 2; text < 8; ++text) cache.store(chain(text, 2));
    EXPECT_EQ(cache.match(chain(1, 20)), 20U);
}

TEST(SharedCacheTest, NodesShareTheBlocksByExtents) {
    SharedCache one({.blocks = 0, .nodes = 1});
    SharedCache five({.blocks = 0, .nodes = 5});
    for (BlockKey text = 1; text <= 500; ++text) {
        one.store(chain(text, 7));
        five.store(chain(text, 7));
        EXPECT_EQ(five.match(chain(text, 9)), 7U);
    }
    EXPECT_EQ(one.imbalance(), 1.0);
    EXPECT_GT(five.imbalance(), 1.0);
    EXPECT_LT(five.imbalance(), 1.3);
}

TEST(SharedCacheTest, OnSeveralNodesAChainMayHaveAHoleThatTheRestOutlives) {
    SharedCache cache({.policy = CachePolicy::kLru, .blocks = 60, .nodes = 6});
    std::uint32_t holes = 0;
    for (BlockKey text = 1; text < 60; ++text) {
        cache.store(chain(text, 10));
        for (BlockKey each = 1; each <= text; ++each)
            holes += cache.count(chain(each, 10)) - cache.match(chain(each, 10));
    }
    EXPECT_GT(holes, 0U);
}

// ---- What kv::WorthOrder is compared with ---------------------------------------------------------

template <class Order>
Gone drain(Order& order, const std::vector<typename Order::Node>& nodes) {
    Gone gone;
    while (auto* const node = order.take_next()) gone.push_back(node - nodes.data());
    return gone;
}

TEST(LruOrderTest, TheLeastRecentlyUsedGoesFirstAndHeldOnesStay) {
    std::vector<LruOrder::Node> nodes(4);
    LruOrder order;
    for (std::size_t i = 0; i < 4; ++i) order.add(nodes[i], i);
    order.use(nodes[0]);
    order.hold(nodes[1]);
    EXPECT_EQ(order.take_next(), &nodes[2]);
    order.unhold(nodes[1]);
    EXPECT_EQ(drain(order, nodes), (Gone{1, 3, 0}));
}

TEST(S3FifoOrderTest, NewOnesGoBeforeThoseThatWereUsed) {
    std::vector<S3FifoOrder::Node> nodes(10);
    S3FifoOrder order;
    for (std::size_t i = 0; i < 10; ++i) order.add(nodes[i], i);
    order.use(nodes[0]);
    order.use(nodes[1]);
    EXPECT_EQ(drain(order, nodes), (Gone{2, 3, 4, 5, 6, 7, 8, 9, 0, 1}));
}

TEST(S3FifoOrderTest, WhatComesBackSoonAfterItWentIsAmongTheMain) {
    std::vector<S3FifoOrder::Node> nodes(10);
    S3FifoOrder order;
    for (std::size_t i = 0; i < 10; ++i) order.add(nodes[i], i);
    S3FifoOrder::Node* const gone = order.take_next();
    EXPECT_EQ(gone, &nodes[0]);
    *gone = {};
    order.add(*gone, 0);
    const Gone rest = drain(order, nodes);
    EXPECT_EQ(rest.back(), 0);  // Those behind it were new; it wasn't.
    EXPECT_EQ(rest.size(), 10U);
}

TEST(S3FifoOrderTest, HeldOnesStay) {
    std::vector<S3FifoOrder::Node> nodes(3);
    S3FifoOrder order;
    for (std::size_t i = 0; i < 3; ++i) order.add(nodes[i], i);
    order.hold(nodes[0]);
    EXPECT_EQ(drain(order, nodes), (Gone{1, 2}));
    order.unhold(nodes[0]);
    EXPECT_EQ(drain(order, nodes), (Gone{0}));
}

}  // namespace
}  // namespace sluice::sim
