#include "sim/block_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "trace/random.h"

namespace sluice::sim {
namespace {

using Keys = std::vector<BlockKey>;
using Kind = BlockCache::Event::Kind;

/// As a sequence does that computes all of `chain` and ends.
void compute(BlockCache& cache, const Keys& chain) {
    const std::uint32_t found = cache.match(chain);
    cache.hold(chain, found);
    ASSERT_TRUE(cache.allocate(static_cast<std::uint32_t>(chain.size()) - found));
    for (std::size_t i = found; i < chain.size(); ++i)
        cache.seal(chain[i], i == 0 ? 0 : chain[i - 1]);
    cache.release(chain);
}

TEST(BlockCacheTest, WhatWasComputedIsFoundAgain) {
    BlockCache cache(8);
    compute(cache, {1, 2, 3});
    EXPECT_EQ(cache.match(Keys{1, 2, 9}), 2u);
    EXPECT_EQ(cache.match(Keys{2, 3}), 2u);  // A chain is what its keys say; it has no other root.
    EXPECT_EQ(cache.available(), 8u);
}

TEST(BlockCacheTest, TheLongestUnusedGoesFirstAndOfAChainItsTail) {
    BlockCache cache(4);
    compute(cache, {1, 2});
    compute(cache, {7, 8});
    compute(cache, {1, 2});
    ASSERT_TRUE(cache.allocate(1));
    EXPECT_EQ(cache.match(Keys{7, 8}), 1u);
    EXPECT_EQ(cache.match(Keys{1, 2}), 2u);
}

TEST(BlockCacheTest, HeldBlocksStay) {
    BlockCache cache(3);
    compute(cache, {1, 2});
    cache.hold(Keys{1, 2}, 2);
    EXPECT_FALSE(cache.allocate(2));
    EXPECT_TRUE(cache.allocate(1));
    EXPECT_EQ(cache.available(), 0u);
    cache.release(Keys{1, 2});
    EXPECT_EQ(cache.available(), 2u);
}

TEST(BlockCacheTest, TwoWhoComputeTheSameShareItInTheEnd) {
    BlockCache cache(4);
    ASSERT_TRUE(cache.allocate(2));
    cache.seal(5, 0);
    cache.seal(5, 0);
    EXPECT_EQ(cache.held(), 1u);
    cache.release(Keys{5});
    EXPECT_EQ(cache.held(), 1u);
    cache.release(Keys{5});
    EXPECT_EQ(cache.held(), 0u);
}

TEST(BlockCacheTest, EventsTellAFollowerWhatIsHere) {
    BlockCache cache(16);
    trace::Random random(3);
    std::set<BlockKey> followed;
    std::uint64_t removed = 0;
    for (int round = 0; round < 2'000; ++round) {
        Keys chain;
        for (std::size_t i = 0; i < 1 + random.next() % 6; ++i)
            chain.push_back((chain.empty() ? 0 : chain.back() * 10) + 1 + random.next() % 3);
        compute(cache, chain);
        for (const BlockCache::Event& event : cache.take_events()) {
            if (event.kind == Kind::kStored) {
                EXPECT_TRUE(followed.insert(event.key).second);
            }
            if (event.kind == Kind::kRemoved) removed += followed.erase(event.key);
        }
        EXPECT_LE(followed.size(), 16u);
        for (const BlockKey key : followed) EXPECT_EQ(cache.match(Keys{key}), 1u);
        EXPECT_EQ(cache.held(), 0u);
        if (round % 500 == 499) {
            cache.clear();
            EXPECT_EQ(cache.take_events().front().kind, Kind::kCleared);
            followed.clear();
        }
    }
    EXPECT_EQ(removed, cache.evictions());
    EXPECT_GT(removed, 100u);
}

}  // namespace
}  // namespace sluice::sim
