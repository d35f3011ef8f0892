#include "worker/kv_hops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "engine/engine.h"

namespace sluice::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Parts = std::vector<std::size_t>;
using Ranges = std::vector<kv::TokenRange>;

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;
constexpr auto kHas = std::optional(Retention::kChat);

TEST(UsableBlocksTest, WhatLiesBehindAHoleIsUsedAndTheHoleComputed) {
    const kv::UsablePrefix prefix =
        usable_blocks({true, true, false, true, false}, 5 * kBlock + 10);
    EXPECT_EQ(prefix.load, (std::vector<Parts>{{0, 1, 3}}));
    EXPECT_EQ(prefix.compute, (Ranges{{2 * kBlock, 3 * kBlock}}));
    EXPECT_EQ(prefix.saved(), 3 * kBlock);
}

TEST(UsableBlocksTest, APromptOfLessThanABlockHasNone) {
    EXPECT_EQ(usable_blocks({}, 10).tokens, 0U);
    EXPECT_EQ(usable_blocks({}, 10).load, (std::vector<Parts>{{}}));
}

class KvHopsTest : public ::testing::Test {
protected:
    KvHopsTest() {
        handover_.hold = "h-1";
        hops_.add({.source = "peer", .speed = &near_, .peer = &handover_, .has = {kHas}});
        hops_.add({.source = "dram", .speed = &near_, .has = {kHas, kHas}});
        hops_.add({.source = "node", .speed = &far_, .has = {{}, kHas, kHas, kHas}});
    }

    [[nodiscard]] std::string source(std::size_t block) const {
        const KvHop* const hop = hops_.first_with(block);
        return hop == nullptr ? "" : std::string(hop->source);
    }

    using Blocks = KvHops::Blocks;
    using Choices = std::vector<kv::LoadChoice>;
    static constexpr std::size_t kBytes = 1'000'000;
    static constexpr steady_clock::time_point kNow{std::chrono::hours(1)};

    /// Computing takes `each` for each block.
    [[nodiscard]] static LoadTerms terms(milliseconds each) {
        return {.queue = milliseconds(0),
                .block_bytes = kBytes,
                .compute_time = [each](auto blocks) { return each * blocks.size(); },
                .load_time = milliseconds(5'000),
                .now = kNow};
    }
    [[nodiscard]] Choices choices() const {
        Choices choices;
        for (const LoadRecord& each : hops_.decisions()) choices.push_back(each.choice);
        return choices;
    }

    port::KvSource handover_;
    kv::TierSpeed near_{std::chrono::microseconds(100), 1e9};
    kv::TierSpeed far_{std::chrono::microseconds(500), 1e8};
    KvHops hops_{5};
};

TEST_F(KvHopsTest, ABlockComesFromTheFirstThatHasIt) {
    EXPECT_EQ(source(0), "peer");
    EXPECT_EQ(source(1), "dram");
    EXPECT_EQ(source(2), "node");
    EXPECT_EQ(source(4), "");
}

TEST_F(KvHopsTest, TheyAreAskedInTheirOrder) {
    for (const char* source : {"peer", "dram", "node"}) {
        const KvHop* const hop = hops_.next();
        ASSERT_NE(hop, nullptr);
        EXPECT_EQ(hop->source, source);
        EXPECT_EQ(&hops_.present(), hop);
    }
    EXPECT_EQ(hops_.next(), nullptr);
    EXPECT_EQ(hops_.next(), nullptr);
}

TEST_F(KvHopsTest, WhatAnotherWorkerHoldsForTheRequestIsNotDecidedOn) {
    hops_.decide({1, 2, 3}, terms(milliseconds(10)));
    ASSERT_EQ(hops_.decisions().size(), 2U);
    EXPECT_EQ(source(0), "peer");
}

TEST_F(KvHopsTest, EachPlaceIsPredictedToLoadWhatItIsTheFirstToHave) {
    hops_.decide({1, 2, 3}, terms(milliseconds(1'000)));
    const auto decisions = hops_.decisions();
    ASSERT_EQ(decisions.size(), 2U);
    EXPECT_EQ(decisions[0].source, "dram");
    EXPECT_EQ(decisions[0].blocks, 1U);
    EXPECT_EQ(decisions[0].predicted.load, near_.predict(kBytes));
    EXPECT_EQ(decisions[0].predicted.compute, milliseconds(1'000));
    EXPECT_EQ(decisions[1].source, "node");
    EXPECT_EQ(decisions[1].blocks, 2U);
    EXPECT_EQ(decisions[1].predicted.load, far_.predict(2 * kBytes));
    EXPECT_EQ(decisions[1].predicted.compute, milliseconds(2'000));
}

TEST_F(KvHopsTest, ASlowPlaceDoesNotCostWhatAQuickOneHas) {
    far_.loaded(kBytes, milliseconds(500), kNow);  // A quarter of that for each block, at least.
    hops_.decide({1, 2, 3}, terms(milliseconds(20)));
    EXPECT_EQ(choices(), (Choices{kv::LoadChoice::kLoad, kv::LoadChoice::kRecompute}));
    EXPECT_EQ(source(1), "dram");
    EXPECT_EQ(source(2), "");
    EXPECT_EQ(source(3), "");
}

TEST_F(KvHopsTest, WhatTheNearOneIsTooSlowForComesFromTheOneBehindIt) {
    near_.loaded(kBytes, milliseconds(500), kNow);
    hops_.decide({1, 2, 3}, terms(milliseconds(20)));
    EXPECT_EQ(choices(), (Choices{kv::LoadChoice::kRecompute, kv::LoadChoice::kLoad}));
    EXPECT_EQ(hops_.decisions()[1].blocks, 3U);
    EXPECT_EQ(source(1), "node");
}

TEST_F(KvHopsTest, WhatIsLoadedDuringTheQueueIsFreeOnce) {
    far_.loaded(kBytes, milliseconds(100), kNow);
    near_.loaded(kBytes, milliseconds(100), kNow);
    LoadTerms terms = this->terms(milliseconds(1));
    terms.queue = near_.predict(kBytes);
    hops_.decide({1, 2, 3}, terms);
    EXPECT_EQ(choices(), (Choices{kv::LoadChoice::kLoad, kv::LoadChoice::kRecompute}));
    EXPECT_EQ(hops_.decisions()[1].predicted.queue, milliseconds(0));
}

TEST_F(KvHopsTest, TheOneThatNobodyTriedForLongIsProbedWhateverANearerOneHas) {
    KvHops hops{40};
    std::vector<std::optional<Retention>> first(40);
    std::fill(first.begin(), first.begin() + 10, kHas);
    hops.add({.source = "dram", .speed = &near_, .has = first});
    hops.add(
        {.source = "node", .speed = &far_, .has = std::vector<std::optional<Retention>>(40, kHas)});
    far_.loaded(kBytes, milliseconds(500), kNow - std::chrono::minutes(1));
    near_.loaded(kBytes, milliseconds(1), kNow);
    Blocks all(40);
    std::iota(all.begin(), all.end(), 0);
    hops.decide(all, terms(milliseconds(2)));
    ASSERT_EQ(hops.decisions().size(), 2U);
    EXPECT_EQ(hops.decisions()[1].choice, kv::LoadChoice::kProbe);
    EXPECT_EQ(hops.first_with(9)->source, "dram");
    EXPECT_EQ(hops.first_with(10)->source, "node");
    EXPECT_EQ(hops.first_with(17)->source, "node");
    EXPECT_EQ(hops.first_with(18), nullptr);
}

TEST_F(KvHopsTest, NoLoadOutlastsComputingWhatWasLoadedUntilThen) {
    LoadTerms terms = this->terms(milliseconds(100));
    terms.queue = milliseconds(50);
    hops_.decide({1, 2, 3}, terms);
    const auto until = [this] { return *hops_.next()->until - kNow; };
    (void)hops_.next();
    EXPECT_EQ(until(), milliseconds(150));
    EXPECT_EQ(until(), milliseconds(350));
}

TEST_F(KvHopsTest, WhereNothingWasDecidedThereIsNoDeadlineWhileSomebodyHoldsBlocks) {
    hops_.decide({}, terms(milliseconds(100)));
    while (const KvHop* const hop = hops_.next()) EXPECT_EQ(hop->until, std::nullopt);
    EXPECT_TRUE(hops_.decisions().empty());
}

TEST_F(KvHopsTest, CanBeForced) {
    LoadTerms terms = this->terms(milliseconds(0));
    terms.forced = kv::ForcedChoice::kLoad;
    terms.load_time = milliseconds(5'000);
    hops_.decide({1, 2, 3}, terms);
    EXPECT_EQ(choices(), (Choices{kv::LoadChoice::kLoad, kv::LoadChoice::kLoad}));
    (void)hops_.next();
    EXPECT_EQ(*hops_.next()->until, kNow + milliseconds(5'000));
}

}  // namespace
}  // namespace sluice::worker
