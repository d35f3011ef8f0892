#include "engine/kv_pool.h"

#include <random>

namespace sluice::engine {
namespace {

KvPool make_pool(std::size_t blocks) {
    auto pool =
        KvPool::create({.blocks = blocks, .block_tokens = 4, .layers = 2, .row_floats = 16});
    EXPECT_TRUE(pool.has_value());
    return std::move(*pool);
}

std::vector<BlockIndex> take_prefix(KvPool& pool, std::span<const kv::BlockKey> keys) {
    std::vector<BlockIndex> blocks;
    pool.take_prefix(keys, blocks);
    return blocks;
}

kv::BlockKey key(int number) { return sha256(std::to_string(number)); }

TEST(KvPoolTest, PagesOfBlocksAndLayersDoNotOverlap) {
    KvPool pool = make_pool(3);
    for (std::size_t layer = 0; layer < 2; ++layer)
        for (BlockIndex block = 0; block < 3; ++block)
            std::fill_n(pool.page(layer, block), 4 * 16, static_cast<float>(layer * 10 + block));
    for (std::size_t layer = 0; layer < 2; ++layer)
        for (BlockIndex block = 0; block < 3; ++block)
            EXPECT_EQ(pool.layer_base(layer)[block * pool.block_stride() + 63],
                      static_cast<float>(layer * 10 + block));
}

TEST(KvPoolTest, ReleasedBlocksStayForTheirPrefixUntilTheyAreNeeded) {
    KvPool pool = make_pool(3);
    const std::vector<BlockIndex> blocks = {*pool.allocate(), *pool.allocate()};
    pool.seal(blocks[0], {.key = key(0)});
    pool.seal(blocks[1], {.key = key(1)});
    pool.release(blocks);
    EXPECT_EQ(pool.held(), 0U);
    const std::vector<kv::BlockKey> keys = {key(0), key(1), key(2)};
    EXPECT_EQ(take_prefix(pool, keys), blocks);
    EXPECT_EQ(pool.held(), 2U);
    pool.release(blocks);
}

TEST(KvPoolTest, EvictionStartsAtTheTailOfTheLongestUnusedPrefix) {
    KvPool pool = make_pool(3);
    const std::vector<BlockIndex> blocks = {*pool.allocate(), *pool.allocate(), *pool.allocate()};
    for (int i = 0; i < 3; ++i) pool.seal(blocks[static_cast<std::size_t>(i)], {.key = key(i)});
    pool.release(blocks);
    const BlockIndex fresh = *pool.allocate();
    EXPECT_EQ(fresh, blocks[2]);
    EXPECT_EQ(pool.evictions(), 1U);
    const std::vector<kv::BlockKey> keys = {key(0), key(1), key(2)};
    EXPECT_EQ(take_prefix(pool, keys).size(), 2U);
}

TEST(KvPoolTest, AFullPoolGivesNothing) {
    KvPool pool = make_pool(1);
    EXPECT_TRUE(pool.allocate().has_value());
    EXPECT_FALSE(pool.allocate().has_value());
}

TEST(KvPoolTest, ASecondBlockOfAKnownNameIsNotKept) {
    KvPool pool = make_pool(2);
    const BlockIndex first = *pool.allocate();
    const BlockIndex second = *pool.allocate();
    pool.seal(first, {.key = key(0)});
    pool.seal(second, {.key = key(0)});
    pool.release(std::vector{first, second});
    EXPECT_EQ(pool.kept(), 1U);
    EXPECT_EQ(pool.available(), 2U);
}

// Whatever sequences do, every block is free, kept or held, and nothing leaks.
TEST(KvPoolTest, RandomLivesLeaveNothingHeld) {
    std::mt19937 random(3);
    KvPool pool = make_pool(16);
    std::vector<std::vector<BlockIndex>> sequences;
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t pick = sequences.empty() ? 0 : random() % sequences.size();
        switch (random() % 4) {
            case 0: {
                std::vector<kv::BlockKey> keys;
                for (int i = 0; i < 3; ++i) keys.push_back(key(static_cast<int>(random() % 8)));
                sequences.push_back(take_prefix(pool, keys));
                break;
            }
            case 1:
                if (sequences.empty()) break;
                if (const auto block = pool.allocate()) sequences[pick].push_back(*block);
                break;
            case 2:
                if (sequences.empty() || sequences[pick].empty()) break;
                pool.seal(sequences[pick].back(), {.key = key(static_cast<int>(random() % 8))});
                break;
            default:
                if (sequences.empty()) break;
                pool.release(sequences[pick]);
                sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(pick));
        }
        ASSERT_LE(pool.held(), 16U);
    }
    for (const auto& sequence : sequences) pool.release(sequence);
    EXPECT_EQ(pool.held(), 0U);
}

}  // namespace
}  // namespace sluice::engine
