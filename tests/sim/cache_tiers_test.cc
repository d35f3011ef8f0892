#include "sim/cache_tiers.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using Keys = std::vector<BlockKey>;

/// 100 us to compute a token, 10 to load it from the machine's memory, 50 from a node.
EngineParameters engine() {
    return {.prefill_row_us = 100.0, .dram_token_us = 10.0, .node_token_us = 50.0};
}

Keys chain(BlockKey text, std::size_t blocks) {
    Keys keys;
    for (std::size_t i = 0; i < blocks; ++i) keys.push_back(text * 1'000 + i);
    return keys;
}

constexpr SharedCacheOptions kEndless{.blocks = 0};
constexpr Time kNow{seconds(10)};

TEST(CacheTiersTest, WhatIsInSeveralTiersComesFromTheNearest) {
    SharedCache nodes(kEndless);
    CacheTiers tiers(engine(), kEndless, &nodes);
    const Keys keys = chain(1, 4);
    EXPECT_EQ(tiers.load(keys, 0, 2'000, {}, kNow).blocks, 0U);
    nodes.store(keys);
    tiers.store(std::span(keys).first(3), 0);
    const auto load = tiers.load(keys, 1, 2'000, {}, kNow);
    EXPECT_EQ(load.blocks, 3U);
    EXPECT_EQ(load.tokens.from(CacheSource::kPool), 0U);
    EXPECT_EQ(load.tokens.from(CacheSource::kDram), 1'024U);
    EXPECT_EQ(load.tokens.from(CacheSource::kNode), 2'000U - 3 * 512);
    // Both at once.
    EXPECT_EQ(load.ready, kNow + microseconds(464 * 50));
}

TEST(CacheTiersTest, LoadsFromOneTierComeOneAfterTheOther) {
    SharedCache nodes(kEndless);
    CacheTiers tiers(engine(), {}, &nodes);
    nodes.store(chain(1, 1));
    nodes.store(chain(2, 1));
    EXPECT_EQ(tiers.load(chain(1, 1), 0, 512, {}, kNow).ready, kNow + microseconds(512 * 50));
    EXPECT_EQ(tiers.load(chain(2, 1), 0, 512, {}, kNow).ready, kNow + microseconds(2 * 512 * 50));
    // A third one would come later than it could be computed, unless others are computed first.
    nodes.store(chain(3, 1));
    EXPECT_EQ(tiers.load(chain(3, 1), 0, 512, {}, kNow).blocks, 0U);
    EXPECT_EQ(tiers.load(chain(3, 1), 0, 512, seconds(1), kNow).blocks, 1U);
}

TEST(CacheTiersTest, OfALongPrefixTheNearPartIsLoadedWhereTheRestIsComputedSooner) {
    EngineParameters slow = engine();
    slow.node_token_us = 1'000.0;
    SharedCache nodes(kEndless);
    CacheTiers tiers(slow, kEndless, &nodes);
    const Keys keys = chain(1, 4);
    tiers.store(std::span(keys).first(2), 0);
    nodes.store(keys);
    const auto load = tiers.load(keys, 0, 2'048, {}, kNow);
    EXPECT_EQ(load.blocks, 2U);
    EXPECT_EQ(load.tokens.sum(), load.tokens.from(CacheSource::kDram));
}

TEST(CacheTiersTest, TheMachinesMemoryGoesWithTheProcessAndTheNodesStay) {
    SharedCache nodes(kEndless);
    CacheTiers tiers(engine(), kEndless, &nodes);
    tiers.store(chain(1, 2), 0);
    tiers.restart();
    const auto load = tiers.load(chain(1, 2), 0, 1'024, {}, kNow);
    EXPECT_EQ(load.tokens.from(CacheSource::kDram), 0U);
    EXPECT_EQ(load.tokens.from(CacheSource::kNode), 1'024U);
}

TEST(CacheTiersTest, WhatAPoolHasIsStoredAgainWhereItWasGivenUp) {
    SharedCache nodes({.blocks = 2});
    CacheTiers tiers(engine(), {}, &nodes);
    tiers.store(chain(1, 2), 0);
    tiers.store(chain(2, 2), 0);
    ASSERT_LT(nodes.count(chain(1, 2)), 2U);
    const auto load = tiers.load(chain(1, 2), 2, 1'024, {}, kNow);
    EXPECT_EQ(load.blocks, 0U);
    EXPECT_EQ(nodes.count(chain(1, 2)), 2U);
}

}  // namespace
}  // namespace sluice::sim
