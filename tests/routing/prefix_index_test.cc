#include "routing/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace sluice::routing {
namespace {

using std::chrono::seconds;

std::vector<BlockHash> chain(std::uint64_t name, std::size_t blocks) {
    std::vector<BlockHash> hashes(blocks);
    std::iota(hashes.begin(), hashes.end(), (name + 1) << 32);
    return hashes;
}

std::span<const BlockHash> first(const std::vector<BlockHash>& all, std::size_t count) {
    return std::span(all).first(count);
}

std::map<WorkerIndex, std::uint32_t> matches(const PrefixIndex& index,
                                             std::span<const BlockHash> prompt) {
    PrefixIndex::Matches found;
    index.match(prompt, found);
    std::map<WorkerIndex, std::uint32_t> result;
    std::uint32_t before = 0;
    for (const auto& each : found.list()) {
        EXPECT_EQ(each.blocks, found.blocks(each.worker));
        EXPECT_TRUE(result.emplace(each.worker, each.blocks).second);
        EXPECT_GE(each.blocks, before);
        before = each.blocks;
    }
    return result;
}

using Expected = std::map<WorkerIndex, std::uint32_t>;

class PrefixIndexTest : public testing::Test {
protected:
    Time now{};
    PrefixIndex index{100, 10'000};
};

TEST_F(PrefixIndexTest, EachWorkersLongestPrefixIsFound) {
    const auto prompt = chain(1, 100);
    index.stored(3, prompt);
    index.stored(7, first(prompt, 17));
    index.stored(9, first(prompt, 1));
    index.stored(11, chain(2, 100));
    EXPECT_EQ(matches(index, prompt), (Expected{{3, 100}, {7, 17}, {9, 1}}));
    EXPECT_EQ(matches(index, first(prompt, 10)), (Expected{{3, 10}, {7, 10}, {9, 1}}));
    EXPECT_EQ(matches(index, chain(5, 3)), Expected{});
    EXPECT_EQ(matches(index, {}), Expected{});
}

// Against the plain way, on chains of every length and with as many holders as there are workers.
TEST_F(PrefixIndexTest, ManyHoldersOfManyLengthsAreToldApart) {
    std::mt19937 random(2);
    for (int round = 0; round < 50; ++round) {
        const auto prompt = chain(round, 1 + random() % 200);
        const std::size_t holders = random() % 100;
        std::set<std::uint32_t> lengths;
        Expected expected;
        for (WorkerIndex worker = 0; worker < holders; ++worker) {
            // No more than 30 different ones.
            const std::size_t step = (prompt.size() + 29) / 30;
            const auto length = std::min<std::size_t>(prompt.size(), step * (1 + random() % 30));
            index.stored(worker, first(prompt, length));
            expected[worker] = static_cast<std::uint32_t>(length);
        }
        EXPECT_EQ(matches(index, prompt), expected);
    }
}

TEST_F(PrefixIndexTest, WhatIsToldTwiceChangesNothing) {
    const auto prompt = chain(1, 50);
    for (int i = 0; i < 2; ++i) {
        for (WorkerIndex worker = 0; worker < 10; ++worker) index.stored(worker, prompt);
        EXPECT_EQ(index.blocks(), 50U);
        EXPECT_EQ(index.held_by(4), 50U);
    }
    for (int i = 0; i < 2; ++i) {
        index.removed(4, first(prompt, 20));
        EXPECT_EQ(index.held_by(4), 30U);
        EXPECT_EQ(index.held_by(5), 50U);
    }
    index.removed(99, prompt);
    for (WorkerIndex worker = 0; worker < 10; ++worker) index.removed(worker, prompt);
    EXPECT_EQ(index.blocks(), 0U);
    EXPECT_EQ(matches(index, prompt), Expected{});
}

TEST_F(PrefixIndexTest, AClearedWorkerHoldsNothingAtOnceAndLeavesNothingBehind) {
    const auto prompt = chain(1, 500);
    const auto others = chain(2, 500);
    for (WorkerIndex worker = 0; worker < 8; ++worker) index.stored(worker, prompt);
    index.stored(3, others);
    index.cleared(3);
    EXPECT_EQ(index.held_by(3), 0U);
    EXPECT_FALSE(matches(index, prompt).contains(3));
    EXPECT_EQ(matches(index, others), Expected{});
    // It fills again while the old traces are swept out.
    index.stored(3, first(others, 100));
    EXPECT_EQ(matches(index, others), (Expected{{3, 100}}));
    for (int i = 0; i < 1'000; ++i) index.stored(5, first(prompt, 1));
    EXPECT_EQ(index.blocks(), 600U);
    EXPECT_EQ(index.held_by(3), 100U);
    EXPECT_EQ(index.held_by(5), 500U);
}

TEST_F(PrefixIndexTest, AnyNumberOfRestartsIsAffordable) {
    for (int restart = 0; restart < 10'000; ++restart) {
        const WorkerIndex worker = restart % 100;
        index.cleared(worker);
        index.stored(worker, chain(restart % 7, 30));
        ASSERT_EQ(index.held_by(worker), 30U);
    }
    EXPECT_LE(index.blocks(), 7U * 30);
}

TEST_F(PrefixIndexTest, AGuessIsForgottenUnlessAnEventConfirmsIt) {
    const auto prompt = chain(1, 10);
    index.expect(1, prompt, now);
    EXPECT_EQ(matches(index, prompt), (Expected{{1, 10}}));
    index.stored(1, first(prompt, 4));
    now += seconds(600);
    index.expect(2, chain(2, 1), now);  // Time passes with the next guess.
    EXPECT_EQ(matches(index, prompt), (Expected{{1, 4}}));
}

TEST_F(PrefixIndexTest, AGuessAmongManyHoldersIsForgottenToo) {
    const auto prompt = chain(1, 10);
    for (WorkerIndex worker = 0; worker < 9; ++worker) index.stored(worker, prompt);
    index.expect(20, prompt, now);
    index.expect(21, prompt, now);
    index.stored(21, prompt);
    now += seconds(600);
    index.expect(1, chain(2, 1), now);
    EXPECT_FALSE(matches(index, prompt).contains(20));
    EXPECT_EQ(matches(index, prompt).at(21), 10U);
}

TEST_F(PrefixIndexTest, AGuessDoesNotUnsayAnEvent) {
    const auto prompt = chain(1, 10);
    index.stored(1, prompt);
    index.expect(1, prompt, now);
    now += seconds(600);
    index.expect(2, chain(2, 1), now);
    EXPECT_EQ(matches(index, prompt), (Expected{{1, 10}}));
}

TEST_F(PrefixIndexTest, WhatIsUntouchedForLongestMakesRoom) {
    PrefixIndex small(4, 100);
    const auto old = chain(1, 50);
    const auto used = chain(2, 50);
    small.stored(0, old);
    small.stored(0, used);
    small.expect(0, used, now);  // Sent again.
    small.stored(1, chain(3, 40));
    EXPECT_EQ(small.blocks(), 100U);
    EXPECT_EQ(matches(small, used), (Expected{{0, 50}}));
    EXPECT_EQ(matches(small, old), Expected{});
    EXPECT_EQ(small.held_by(0), 60U);
}

// Elsewhere the index of a router grew to hundreds of gigabytes.
TEST_F(PrefixIndexTest, MemoryIsBoundedOverMillionsOfBlocks) {
    PrefixIndex small(64, 50'000);
    std::mt19937_64 random(1);
    std::size_t after_first = 0;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 50'000; ++i) {
            const BlockHash hash = random();
            const auto worker = static_cast<WorkerIndex>(random() % 64);
            small.stored(worker, {&hash, 1});
            small.expect((worker + 1) % 64, {&hash, 1}, now);
            if (i % 2 == 0) small.removed(worker, {&hash, 1});
        }
        ASSERT_LE(small.blocks(), 50'000U);
        if (round == 3) after_first = small.memory_bytes();
    }
    EXPECT_LE(small.memory_bytes(), after_first);
    EXPECT_LT(small.memory_bytes(), 50'000U * 160);
}

// Any order of events ends where a set of pairs does.
TEST_F(PrefixIndexTest, RandomEventsEndWhereASetOfPairsDoes) {
    std::mt19937 random(11);
    std::set<std::pair<WorkerIndex, BlockHash>> pairs;
    for (int step = 0; step < 200'000; ++step) {
        const WorkerIndex worker = random() % 12;
        const BlockHash hash = random() % 500;
        const auto roll = random() % 1'000;
        if (roll < 550) {
            index.stored(worker, {&hash, 1});
            pairs.emplace(worker, hash);
        } else if (roll < 995) {
            index.removed(worker, {&hash, 1});
            pairs.erase({worker, hash});
        } else {
            index.cleared(worker);
            std::erase_if(pairs, [&](const auto& pair) { return pair.first == worker; });
        }
    }
    for (BlockHash hash = 0; hash < 500; ++hash) {
        const auto found = matches(index, {&hash, 1});
        for (WorkerIndex worker = 0; worker < 12; ++worker)
            ASSERT_EQ(found.contains(worker), pairs.contains({worker, hash}));
    }
    for (WorkerIndex worker = 0; worker < 12; ++worker) {
        EXPECT_EQ(index.held_by(worker), std::ranges::count_if(pairs, [&](const auto& pair) {
                      return pair.first == worker;
                  }));
    }
}

TEST_F(PrefixIndexTest, StoresHoldAChainTogether) {
    const auto all = chain(1, 50);
    const std::vector<WorkerIndex> stores{2, 3};
    EXPECT_EQ(index.held_by_any(all, stores), 0U);
    index.stored(2, first(all, 16));
    index.stored(3, std::span(all).subspan(16, 16));
    EXPECT_EQ(index.held_by_any(all, stores), 32U);
    index.stored(2, std::span(all).subspan(32, 7));
    EXPECT_EQ(index.held_by_any(all, stores), 39U);
    EXPECT_EQ(index.held_by_any(all, std::vector<WorkerIndex>{3}), 16U);
    // Ends go first; what lies behind them at others is there.
    index.removed(3, std::span(all).subspan(28, 4));
    EXPECT_EQ(index.held_by_any(all, stores), 28U + 7U);
    index.cleared(2);
    EXPECT_EQ(index.held_by_any(all, stores), 12U);
    EXPECT_EQ(index.held_by_any({}, stores), 0U);
}

TEST_F(PrefixIndexTest, WhatALostStoreHeldIsAHoleInTheChain) {
    const auto all = chain(1, 16 * 12);
    const std::vector<WorkerIndex> stores{2, 3};
    for (std::size_t extent = 0; extent < 12; ++extent)
        index.stored(extent % 3 == 0 ? 2 : 3, std::span(all).subspan(16 * extent, 16));
    EXPECT_EQ(index.held_by_any(all, stores), 16U * 12);
    index.cleared(2);
    EXPECT_EQ(index.held_by_any(all, stores), 16U * 8);
    // A block that was damaged, inside of an extent: one of sixteen, and nobody looks.
    index.removed(3, std::span(all).subspan(20, 1));
    EXPECT_EQ(index.held_by_any(all, stores), 16U * 8);
    // The last of an extent: what is before it counts, and what is behind it.
    index.removed(3, std::span(all).subspan(31, 1));
    EXPECT_EQ(index.held_by_any(all, stores), 16U * 7 + 4);
}

TEST_F(PrefixIndexTest, OfWhatSomebodyHoldsGuessesAreNotConfirmed) {
    const auto all = chain(1, 50);
    EXPECT_EQ(index.confirmed(1, all), 0U);
    index.expect(1, all, now);
    EXPECT_EQ(index.confirmed(1, all), 0U);
    index.stored(1, first(all, 20));
    EXPECT_EQ(index.confirmed(1, all), 20U);
    EXPECT_EQ(index.confirmed(1, first(all, 7)), 7U);
    EXPECT_EQ(index.confirmed(2, all), 0U);
    // So many holders that they become a set.
    for (WorkerIndex other = 2; other < 8; ++other) index.expect(other, all, now);
    index.stored(3, first(all, 33));
    EXPECT_EQ(index.confirmed(1, all), 20U);
    EXPECT_EQ(index.confirmed(3, all), 33U);
    EXPECT_EQ(index.confirmed(4, all), 0U);
    EXPECT_EQ(index.confirmed(1, {}), 0U);
}

}  // namespace
}  // namespace sluice::routing
