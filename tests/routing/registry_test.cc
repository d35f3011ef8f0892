#include "routing/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <random>

namespace sluice::routing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kBlockTokens = 64;

std::vector<BlockHash> chain(std::uint64_t name, std::size_t blocks) {
    std::vector<BlockHash> hashes(blocks);
    std::iota(hashes.begin(), hashes.end(), name * 1'000'000 + 1);
    return hashes;
}

class RegistryTest : public testing::Test {
protected:
    WorkerIndex add(WorkerOptions options = {}) {
        const WorkerIndex worker = *registry.add(std::move(options));
        registry.set_ready(worker, true, now);
        return worker;
    }
    WorkerIndex add_lender() {
        const WorkerIndex worker = add({.lends = true});
        registry.set_events(worker, true);
        return worker;
    }
    auto pick(PoolIndex pool = 0, const Tried& tried = {}) {
        return registry.pick({.pool = pool, .tokens = 10}, tried, now);
    }
    auto pick(const Demand& demand) { return registry.pick(demand, {}, now); }
    void later(Time::duration span) { now += span; }

    Time now = Time{} + std::chrono::hours(1);
    Registry registry{16};
};

TEST_F(RegistryTest, OnlyReadyWorkersOfThePoolArePicked) {
    const WorkerIndex other = add({.pool = 1});
    EXPECT_EQ(pick(0).error(), NoPick::kNoneReady);
    const WorkerIndex own = add({.pool = 0});
    EXPECT_EQ(pick(0)->lease.worker(), own);
    EXPECT_EQ(pick(1)->lease.worker(), other);
    registry.set_ready(own, false, now);
    EXPECT_EQ(pick(0).error(), NoPick::kNoneReady);
    EXPECT_EQ(registry.ready_in(0, now), 0U);
    EXPECT_EQ(registry.ready_in(1, now), 1U);
}

TEST_F(RegistryTest, TheLeastLoadedIsPickedAndEqualsTakeTurns) {
    const WorkerIndex first = add();
    const WorkerIndex second = add();
    const auto held = pick();
    EXPECT_EQ(held->lease.worker(), first);
    EXPECT_EQ(pick()->lease.worker(), second);
    EXPECT_EQ(pick()->lease.worker(), second);
    EXPECT_EQ(registry.dispatched(0), 3U);
}

TEST_F(RegistryTest, EqualsTakeTurns) {
    add();
    add();
    const WorkerIndex before = pick()->lease.worker();
    EXPECT_NE(pick()->lease.worker(), before);
    EXPECT_EQ(pick()->lease.worker(), before);
}

TEST_F(RegistryTest, AWorkerTakesNoMoreThanItHolds) {
    add({.capacity = 2});
    const auto one = pick();
    auto two = pick();
    EXPECT_EQ(pick().error(), NoPick::kAllBusy);
    EXPECT_EQ(registry.capacity_of(0), 2U);
    two->lease.release();
    EXPECT_TRUE(pick().has_value());
    add();
    EXPECT_EQ(registry.capacity_of(0), 0U);
}

TEST_F(RegistryTest, WhatWasTriedComesLastOrNeverWithItsGroup) {
    const WorkerIndex first = add({.failure_group = "rack"});
    const WorkerIndex second = add({.failure_group = "rack"});
    EXPECT_EQ(registry.failure_group(second), (std::vector{second, first}));
    Tried tried;
    tried.add(first);
    EXPECT_TRUE(pick(0, tried).has_value());
    tried.rule = Tried::Rule::kExclude;
    EXPECT_EQ(pick(0, tried).error(), NoPick::kAllTried);
    const WorkerIndex elsewhere = add();
    EXPECT_EQ(pick(0, tried)->lease.worker(), elsewhere);
    tried.rule = Tried::Rule::kAvoid;
    EXPECT_EQ(pick(0, tried)->lease.worker(), elsewhere);
}

TEST_F(RegistryTest, ADrainingWorkerKeepsWhatItHasAndTakesNothingNew) {
    const WorkerIndex worker = add();
    const auto held = pick();
    registry.drain(worker, true);
    EXPECT_EQ(pick().error(), NoPick::kNoneReady);
    EXPECT_EQ(registry.load(worker).requests, 1U);
    registry.drain(worker, false);
    EXPECT_TRUE(pick().has_value());
}

TEST_F(RegistryTest, TheIndexOfARemovedWorkerIsGivenAgainOnceNothingIsLeasedOnIt) {
    Registry small(1);
    const WorkerIndex worker = *small.add({});
    small.set_ready(worker, true, now);
    EXPECT_FALSE(small.add({}).has_value());
    auto held = small.pick({.tokens = 1}, {}, now);
    small.remove(worker);
    small.remove(worker);
    EXPECT_FALSE(small.pick({.tokens = 1}, {}, now).has_value());
    EXPECT_FALSE(small.add({}).has_value());
    held->lease.release();
    EXPECT_EQ(*small.add({}), worker);
    EXPECT_FALSE(small.ready(worker));
    EXPECT_EQ(small.dispatched(0), 1U);
}

// ---- Phases ---------------------------------------------------------------------------------------

TEST_F(RegistryTest, EachPhaseHasItsWorkersAndAnyStandsInWhenTheyAreGone) {
    const WorkerIndex prefill = add({.phase = LegPhase::kPrefill});
    const WorkerIndex decode = add({.phase = LegPhase::kDecode});
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(pick({.phase = LegPhase::kPrefill, .tokens = 9})->lease.worker(), prefill);
        EXPECT_EQ(pick({.phase = LegPhase::kDecode, .tokens = 9})->lease.worker(), decode);
    }
    EXPECT_TRUE(registry.serves(0, LegPhase::kDecode, now));
    EXPECT_FALSE(registry.serves(0, LegPhase::kFull, now));
    registry.set_ready(decode, false, now);
    EXPECT_FALSE(registry.serves(0, LegPhase::kDecode, now));
    EXPECT_EQ(pick({.phase = LegPhase::kDecode, .tokens = 9})->lease.worker(), prefill);
    registry.set_ready(decode, true, now);
    registry.remove(prefill);
    EXPECT_EQ(pick({.phase = LegPhase::kPrefill, .tokens = 9})->lease.worker(), decode);
    EXPECT_EQ(pick({.phase = LegPhase::kFull, .tokens = 9})->lease.worker(), decode);
}

TEST_F(RegistryTest, ABusyKindIsWaitedFor) {
    add({.phase = LegPhase::kPrefill, .capacity = 1});
    add({.phase = LegPhase::kDecode});
    const auto held = pick({.phase = LegPhase::kPrefill, .tokens = 9});
    EXPECT_EQ(pick({.phase = LegPhase::kPrefill, .tokens = 9}).error(), NoPick::kAllBusy);
}

TEST_F(RegistryTest, DecodeKeepsKeysAndValuesEven) {
    for (int i = 0; i < 4; ++i) add({.phase = LegPhase::kDecode, .costs = {.kv_tokens = 100'000}});
    std::mt19937 random(7);
    std::vector<Pick> held;
    for (int i = 0; i < 64; ++i) {
        const std::uint64_t tokens = 100 + random() % 10'000;
        held.push_back(*pick({.phase = LegPhase::kDecode, .tokens = tokens}));
    }
    std::vector<std::uint64_t> kv;
    for (WorkerIndex worker = 0; worker < 4; ++worker)
        kv.push_back(registry.load(worker).kv_tokens);
    const auto [least, most] = std::ranges::minmax(kv);
    EXPECT_LT(most - least, 15'000U);
}

TEST_F(RegistryTest, EncodeTakesTheWorkerWithTheFewestImageTokens) {
    const WorkerIndex first = add({.phase = LegPhase::kEncode});
    const WorkerIndex second = add({.phase = LegPhase::kEncode});
    const auto large = pick({.phase = LegPhase::kEncode, .image_tokens = 4'000});
    EXPECT_EQ(large->lease.worker(), first);
    std::vector<Pick> small;
    for (int i = 0; i < 3; ++i) {
        small.push_back(*pick({.phase = LegPhase::kEncode, .image_tokens = 1'000}));
        EXPECT_EQ(small.back().lease.worker(), second);
    }
}

// ---- Load -----------------------------------------------------------------------------------------

// Elsewhere requests were counted only once their head had come back, so that all slow ones went to
// one worker.
TEST_F(RegistryTest, AHundredRequestsWithoutAFirstTokenSpreadEvenly) {
    const auto prompt = chain(1, 100);
    for (int i = 0; i < 4; ++i) add({.costs = {.block_tokens = kBlockTokens}});
    registry.index().stored(0, prompt);  // All of them have one prefix, which one worker holds.
    std::vector<Pick> held;
    for (int i = 0; i < 100; ++i)
        held.push_back(*pick({.tokens = 100 * kBlockTokens + 2'000, .blocks = prompt}));
    std::vector<std::uint32_t> requests;
    for (WorkerIndex worker = 0; worker < 4; ++worker) {
        const Load& load = registry.load(worker);
        requests.push_back(static_cast<std::uint32_t>(load.prefill_tokens));
    }
    const auto [least, most] = std::ranges::minmax(requests);
    EXPECT_LE(most, least * 3 / 2);
}

TEST_F(RegistryTest, WhatAWorkerReportsBeyondOurLeasesCounts) {
    registry.set_policy(0, Policy::kLeastLoaded);
    const WorkerIndex busy = add();
    const WorkerIndex idle = add();
    for (int i = 0; i < 2; ++i) registry.report(busy, {.requests = 3}, now);
    registry.report(idle, {.requests = 0}, now);
    std::vector<Pick> held;
    for (int i = 0; i < 3; ++i) held.push_back(*pick());
    EXPECT_EQ(registry.load(idle).requests, 3U);
    EXPECT_EQ(registry.total_load(busy, now).requests, 3U);
    // Our own are in its next report, and not counted twice.
    registry.report(idle, {.requests = 3}, now);
    EXPECT_EQ(registry.total_load(idle, now).requests, 3U);
}

TEST_F(RegistryTest, WhoSaysNothingIsTakenForAsBusyAsItsLike) {
    registry.set_policy(0, Policy::kLeastLoaded);
    for (int i = 0; i < 3; ++i) add();
    const WorkerIndex silent = add();
    for (int i = 0; i < 100; ++i)
        for (WorkerIndex worker = 0; worker < 3; ++worker)
            registry.report(worker, {.requests = 8}, now);
    EXPECT_GE(registry.total_load(silent, now).requests, 4U);
    std::vector<Pick> held;
    for (int i = 0; i < 12; ++i) held.push_back(*pick());
    EXPECT_LE(registry.load(silent).requests, 8U);
}

TEST_F(RegistryTest, WithAllReportsStaleRoutingGoesOnByOurOwnLeases) {
    for (int i = 0; i < 4; ++i) add();
    for (WorkerIndex worker = 0; worker < 4; ++worker)
        registry.report(worker, {.requests = worker * 2}, now);
    later(seconds(600));
    std::vector<Pick> held;
    for (int i = 0; i < 40; ++i) held.push_back(*pick());
    for (WorkerIndex worker = 0; worker < 4; ++worker) {
        EXPECT_GE(registry.load(worker).requests, 5U);
        EXPECT_LE(registry.load(worker).requests, 15U);
    }
}

TEST_F(RegistryTest, AFlappingWorkerLeavesNothingCounted) {
    for (int i = 0; i < 4; ++i) add();
    std::mt19937 random(3);
    std::vector<Pick> held;
    std::vector<WorkerIndex> workers{0, 1, 2, 3};
    for (int flap = 0; flap < 1'000; ++flap) {
        WorkerIndex& worker = workers[random() % 4];
        for (int i = 0; i < 5; ++i)
            if (auto picked = pick()) held.push_back(std::move(*picked));
        if (flap % 2 == 0) {
            registry.set_ready(worker, false, now);
        } else {
            registry.remove(worker);
            worker = add();
        }
        later(milliseconds(10));
        registry.set_ready(worker, true, now);
        registry.report(worker, {.requests = static_cast<std::uint32_t>(random() % 9)}, now);
        while (held.size() > 20) held.erase(held.begin() + random() % held.size());
    }
    held.clear();
    EXPECT_EQ(registry.leases(), 0U);
    for (WorkerIndex worker = 0; worker < 16; ++worker) EXPECT_EQ(registry.load(worker), Load{});
}

TEST_F(RegistryTest, SpeedsAreLearnedFromWhatPromptsTook) {
    const WorkerIndex slow = add();
    const WorkerIndex fast = add();
    for (int i = 0; i < 50; ++i) {
        registry.on_first_token(slow, 10'000, 4.0);
        registry.on_first_token(fast, 10'000, 1.0);
    }
    EXPECT_NEAR(registry.seconds_per_work(slow) / registry.seconds_per_work(fast), 4.0, 0.1);
    std::vector<Pick> held;
    for (int i = 0; i < 100; ++i) held.push_back(*pick({.tokens = 1'000}));
    EXPECT_NEAR(registry.load(fast).requests, 80, 8);
}

// ---- Prefixes -------------------------------------------------------------------------------------

TEST_F(RegistryTest, AConversationsNextTurnGoesWhereItsPrefixIs) {
    for (int i = 0; i < 4; ++i) add();
    const auto turn = chain(1, 40);
    auto first = pick({.tokens = 40 * kBlockTokens, .blocks = turn});
    registry.expect(first->lease.worker(), turn, now);
    first->lease.prefill_left(0);
    const auto second = pick({.tokens = 41 * kBlockTokens, .blocks = turn});
    EXPECT_EQ(second->lease.worker(), first->lease.worker());
    EXPECT_EQ(second->matched_tokens, 40 * kBlockTokens);
    EXPECT_EQ(second->lease.load().prefill_tokens, kBlockTokens);
}

// Elsewhere affinity is thrown away as soon as loads differ by a threshold, and hits fall off a cliff.
TEST_F(RegistryTest, AffinityFadesGraduallyAsTheHolderGetsBusier) {
    std::vector<double> shares;
    for (int step = 0; step <= 40; ++step) {
        Registry workers(4);
        for (int i = 0; i < 4; ++i) workers.set_ready(*workers.add({}), true, now);
        std::vector<BlockHash> all;
        std::mt19937 random(5);
        int hits = 0;
        for (int i = 0; i < 400; ++i) {
            const std::size_t blocks = 1 + random() % 200;
            const auto prompt = chain(i, blocks);
            workers.index().stored(0, prompt);
            // What waits at the holder beside the others.
            Tried others;
            others.rule = Tried::Rule::kExclude;
            others.workers = {1, 2, 3};
            const std::uint64_t ahead = std::uint64_t{64} * 10 * step;
            const auto busy = workers.pick({.tokens = ahead}, others, now);
            const auto picked =
                workers.pick({.tokens = blocks * 64 + 64, .blocks = prompt}, {}, now);
            hits += picked->lease.worker() == 0 ? 1 : 0;
        }
        shares.push_back(hits / 400.0);
    }
    EXPECT_GT(shares.front(), 0.95);
    EXPECT_LT(shares.back(), 0.1);
    for (std::size_t i = 1; i < shares.size(); ++i) {
        EXPECT_LE(shares[i], shares[i - 1]);
        EXPECT_LT(shares[i - 1] - shares[i], 0.15) << i;
    }
}

TEST_F(RegistryTest, APrefixThatEverybodyHasOverloadsNobody) {
    for (int i = 0; i < 8; ++i) add();
    const auto common = chain(1, 20);
    std::vector<Pick> held;
    std::vector<std::uint64_t> work(8);
    for (int i = 0; i < 800; ++i) {
        auto prompt = common;
        const auto own = chain(i + 2, 10);
        prompt.insert(prompt.end(), own.begin(), own.end());
        held.push_back(*pick({.tokens = 30 * kBlockTokens, .blocks = prompt}));
        const WorkerIndex worker = held.back().lease.worker();
        registry.expect(worker, prompt, now);
        work[worker] += held.back().lease.load().prefill_tokens;
        if (held.size() > 100) held.erase(held.begin());
    }
    const auto [least, most] = std::ranges::minmax(work);
    EXPECT_LT(static_cast<double>(most), 1.15 * static_cast<double>(least));
}

TEST_F(RegistryTest, AnotherProcessHoldsNothingAndHasNoPast) {
    const WorkerIndex worker = add();
    registry.index().stored(worker, chain(1, 5));
    registry.on_result(worker, LegResult::kStalled, now, now);
    EXPECT_FALSE(registry.takes_requests(worker, now));
    registry.on_restart(worker, now);
    EXPECT_FALSE(registry.ready(worker));
    registry.set_ready(worker, true, now);
    EXPECT_TRUE(registry.takes_requests(worker, now));
    EXPECT_EQ(registry.index().held_by(worker), 0U);
    EXPECT_EQ(pick({.tokens = 999, .blocks = chain(1, 5)})->matched_tokens, 0U);
}

// ---- Health ---------------------------------------------------------------------------------------

TEST_F(RegistryTest, AGroupFailsTogether) {
    const WorkerIndex first = add({.failure_group = "node"});
    const WorkerIndex second = add({.failure_group = "node"});
    const WorkerIndex other = add();
    registry.on_result(first, LegResult::kStalled, now, now);
    EXPECT_FALSE(registry.takes_requests(first, now));
    EXPECT_FALSE(registry.takes_requests(second, now));
    EXPECT_TRUE(registry.takes_requests(other, now));
    EXPECT_EQ(registry.ready_in(0, now), 1U);
}

TEST_F(RegistryTest, AWorkerThatReturnsBeginsWithASmallShare) {
    for (int i = 0; i < 3; ++i) add();
    later(seconds(60));
    const WorkerIndex back = add();
    std::vector<Pick> held;
    for (int i = 0; i < 100; ++i) held.push_back(*pick());
    EXPECT_LT(registry.load(back).requests, 12U);
    held.clear();
    later(seconds(60));
    for (int i = 0; i < 100; ++i) held.push_back(*pick());
    EXPECT_NEAR(registry.load(back).requests, 25, 2);
}

TEST_F(RegistryTest, AnIdleNewWorkerHasItsTurnMoreRarely) {
    add();
    later(seconds(60));
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(pick().has_value());
    const WorkerIndex back = add();
    int turns = 0;
    for (int i = 0; i < 100; ++i) turns += pick()->lease.worker() == back ? 1 : 0;
    EXPECT_NEAR(turns, 20, 2);
}

TEST_F(RegistryTest, AWorkerThatCameBackAsAnotherModelIsNotOfItsPool) {
    const WorkerIndex first = add();
    const WorkerIndex second = add();
    EXPECT_TRUE(registry.set_identity(first, "right", now));
    EXPECT_TRUE(registry.set_identity(second, "right", now));
    registry.on_restart(second, now);
    EXPECT_FALSE(registry.set_identity(second, "wrong", now));
    // Even while the other one restarts.
    registry.set_ready(first, false, now);
    later(seconds(30));
    EXPECT_FALSE(registry.set_identity(second, "wrong", now));
    // If there never comes another, the pool is what is there.
    later(seconds(60));
    EXPECT_TRUE(registry.set_identity(second, "wrong", now));
    EXPECT_TRUE(registry.set_identity(first, "wrong", now));
}

// ---- Tiers ----------------------------------------------------------------------------------------

TEST_F(RegistryTest, LongPromptsLeaveWorkersToShortOnes) {
    for (int i = 0; i < 4; ++i) add();
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(pick({.tokens = 1'000}).has_value());
    std::vector<Pick> held;
    for (int i = 0; i < 8; ++i) held.push_back(*pick({.tokens = 128 * 1024}));
    const auto quick = pick({.tokens = 1'000});
    EXPECT_LT(quick->ttft, 1.0);
}

TEST_F(RegistryTest, WithNobodyShortLongPromptsHaveAllWorkers) {
    for (int i = 0; i < 4; ++i) add();
    EXPECT_TRUE(pick({.tokens = 1'000}).has_value());
    later(seconds(600));
    std::vector<Pick> held;
    for (int i = 0; i < 4; ++i) held.push_back(*pick({.tokens = 128 * 1024}));
    for (WorkerIndex worker = 0; worker < 4; ++worker)
        EXPECT_EQ(registry.load(worker).requests, 1U);
}

// ---- Many workers ---------------------------------------------------------------------------------

TEST(LargeRegistryTest, ThousandsOfWorkersAreKeptEven) {
    constexpr WorkerIndex kWorkers = 4'000;
    Registry registry(kWorkers);
    const Time now = Time{} + std::chrono::hours(1);
    for (WorkerIndex i = 0; i < kWorkers; ++i) registry.set_ready(*registry.add({}), true, now);
    std::vector<Pick> held;
    for (WorkerIndex i = 0; i < 5 * kWorkers; ++i)
        held.push_back(*registry.pick({.tokens = 1'000}, {}, now));
    for (WorkerIndex i = 0; i < kWorkers; ++i) {
        EXPECT_GE(registry.load(i).requests, 3U);
        EXPECT_LE(registry.load(i).requests, 7U);
    }
}

TEST(LargeRegistryTest, TheOnlyWorkerWithRoomAndTheOnlyHolderAreFoundAmongThousands) {
    constexpr WorkerIndex kWorkers = 1'000;
    Registry registry(kWorkers);
    const Time now = Time{} + std::chrono::hours(1);
    for (WorkerIndex i = 0; i < kWorkers; ++i)
        registry.set_ready(*registry.add({.capacity = 2}), true, now);
    const auto prompt = chain(1, 50);
    registry.index().stored(777, prompt);
    auto holder = registry.pick({.tokens = 3'300, .blocks = prompt}, {}, now);
    EXPECT_EQ(holder->lease.worker(), 777U);
    for (WorkerIndex i = 0; i < kWorkers; ++i) registry.set_ready(i, i == 123, now);
    EXPECT_EQ(registry.pick({.tokens = 1}, {}, now)->lease.worker(), 123U);
}

TEST_F(RegistryTest, AStoreTakesNoRequests) {
    const WorkerIndex store = *registry.add_store();
    EXPECT_EQ(pick().error(), NoPick::kNoneReady);
    const WorkerIndex worker = add();
    const auto blocks = chain(1, 32);
    registry.index().stored(store, blocks);
    const Demand demand{.tokens = 32 * kBlockTokens, .blocks = blocks};
    const auto picked = pick(demand);
    EXPECT_EQ(picked->lease.worker(), worker);
    EXPECT_EQ(picked->matched_tokens, 0U);
    // Nearly nothing is left to compute, but it has to be brought in.
    const double with_store = picked->ttft;
    registry.remove(store);
    EXPECT_EQ(registry.index().held_by(store), 0U);
    EXPECT_GT(pick(demand)->ttft, 5 * with_store);
}

/// Of 800 requests with one hot prefix, at 12 at a time over 4 workers, by worker; and which share of
/// their tokens was found somewhere.
struct HotShare {
    std::map<WorkerIndex, std::size_t> requests;
    double found = 0.0;
};

HotShare ask_for_hot(Registry& registry, std::span<const BlockHash> hot, Time now) {
    HotShare share;
    std::deque<Pick> under_way;
    double found = 0.0;
    double tokens = 0.0;
    for (std::size_t i = 0; i < 800; ++i) {
        std::vector<BlockHash> blocks(hot.begin(), hot.end());
        const auto own = chain(100 + i, 2);
        blocks.insert(blocks.end(), own.begin(), own.end());
        const Demand demand{.tokens = blocks.size() * kBlockTokens + 1, .blocks = blocks};
        std::map<WorkerIndex, std::uint64_t> before;
        for (WorkerIndex each = 0; each < 5; ++each)
            before[each] = registry.load(each).prefill_tokens;
        auto picked = registry.pick(demand, {}, now += milliseconds(5));
        if (!picked) return share;
        const WorkerIndex worker = picked->lease.worker();
        ++share.requests[worker];
        tokens += static_cast<double>(demand.tokens);
        found += static_cast<double>(demand.tokens -
                                     (registry.load(worker).prefill_tokens - before[worker]));
        registry.index().stored(worker, hot);  // As it says itself, once it has loaded them.
        under_way.push_back(std::move(*picked));
        if (under_way.size() > 12) under_way.pop_front();
    }
    share.found = found / tokens;
    return share;
}

// A hot prefix that lies at a cache node is worth the time of a load, to the worker that has it, too: the
// work spreads, and nearly nothing is computed twice.
TEST_F(RegistryTest, AHotPrefixAtANodePinsNobody) {
    const WorkerIndex store = *registry.add_store();
    const WorkerIndex holder = add();
    for (int i = 0; i < 3; ++i) add();
    const auto hot = chain(1, 64);
    registry.index().stored(holder, hot);
    registry.index().stored(store, hot);
    const HotShare share = ask_for_hot(registry, hot, now);
    ASSERT_EQ(share.requests.size(), 4U);
    for (const auto& [worker, count] : share.requests) EXPECT_LE(count, 260U) << worker;
    EXPECT_GE(share.found, 0.9);
}

// The same without any node: what one worker has in its pool the others can load.
TEST_F(RegistryTest, AHotPrefixAtAPeerPinsNobody) {
    const WorkerIndex holder = add_lender();
    for (int i = 0; i < 3; ++i) add_lender();
    const auto hot = chain(1, 64);
    registry.index().stored(holder, hot);
    const HotShare share = ask_for_hot(registry, hot, now);
    ASSERT_EQ(share.requests.size(), 4U);
    for (const auto& [worker, count] : share.requests) EXPECT_LE(count, 260U) << worker;
    EXPECT_GE(share.found, 0.9);
}

class PeerTest : public RegistryTest {
protected:
    /// The one without the prompt is picked: the other has enough to do.
    auto pick_borrower() {
        auto picked = pick(demand);
        EXPECT_EQ(picked->lease.worker(), borrower);
        return picked;
    }
    void keep_busy() {
        while (registry.load(holder).requests < 50)
            busy.push_back(*registry.pick({.tokens = 50'000}, only_not(borrower), now));
    }
    static Tried only_not(WorkerIndex worker) {
        return {.rule = Tried::Rule::kExclude, .workers = {worker}};
    }

    WorkerIndex holder = add_lender();
    WorkerIndex borrower = add_lender();
    std::vector<BlockHash> blocks = chain(1, 32);
    Demand demand{.tokens = 32 * kBlockTokens + 9, .blocks = blocks};
    std::vector<Pick> busy;
};

TEST_F(PeerTest, WhoHasMoreIsNamedToTheOneThatIsPicked) {
    registry.index().stored(holder, std::span(blocks).first(20));
    EXPECT_FALSE(pick(demand)->peer.has_value());  // The holder itself.
    keep_busy();
    auto picked = pick_borrower();
    ASSERT_TRUE(picked->peer.has_value());
    EXPECT_EQ(picked->peer->worker, holder);
    EXPECT_EQ(picked->peer->blocks, 20U);
    const double loaded = picked->ttft;
    registry.set_lends(holder, false);
    picked = pick_borrower();
    EXPECT_FALSE(picked->peer.has_value());
    EXPECT_GT(picked->ttft, 2 * loaded);
}

TEST_F(PeerTest, NobodyIsNamedWhereANodeOrThePickedOneHasAsMuch) {
    registry.index().stored(holder, std::span(blocks).first(20));
    keep_busy();
    const WorkerIndex store = *registry.add_store();
    registry.index().stored(store, std::span(blocks).first(20));
    EXPECT_FALSE(pick_borrower()->peer.has_value());
    registry.remove(store);
    EXPECT_TRUE(pick_borrower()->peer.has_value());
    registry.index().stored(borrower, std::span(blocks).first(20));
    EXPECT_FALSE(pick_borrower()->peer.has_value());
}

TEST_F(PeerTest, WhoIsGoneOrDrainsOrWasTriedIsNotNamed) {
    registry.index().stored(holder, blocks);
    keep_busy();
    registry.drain(holder, true);
    EXPECT_FALSE(pick_borrower()->peer.has_value());
    registry.drain(holder, false);
    EXPECT_TRUE(pick_borrower()->peer.has_value());
    EXPECT_FALSE(registry.pick(demand, {.workers = {holder}}, now)->peer.has_value());
    registry.set_ready(holder, false, now);
    EXPECT_FALSE(pick_borrower()->peer.has_value());
}

TEST_F(PeerTest, WhatSomebodyIsOnlyAboutToComputeIsNotThere) {
    keep_busy();
    registry.expect(holder, blocks, now);
    registry.index().stored(holder, std::span(blocks).first(5));
    const auto picked = pick_borrower();
    ASSERT_TRUE(picked->peer.has_value());
    EXPECT_EQ(picked->peer->worker, holder);
    EXPECT_EQ(picked->peer->blocks, 5U);
}

TEST_F(PeerTest, AnotherPoolsWorkerIsNotNamed) {
    const WorkerIndex other = add({.pool = 1, .lends = true});
    registry.set_events(other, true);
    registry.index().stored(other, blocks);
    EXPECT_FALSE(pick(demand)->peer.has_value());
}

}  // namespace
}  // namespace sluice::routing
