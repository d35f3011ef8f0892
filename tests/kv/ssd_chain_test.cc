// Chains on the SSD: they go from their tails, a use of their end is one of their start, and both are
// still so after a restart.

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "block_maker.h"
#include "ssd_support.h"

namespace sluice::kv {
namespace {

namespace fs = std::filesystem;

using Chain = std::vector<TestBlock>;

class SsdChainTest : public SsdTierTest {
protected:
    SsdChainTest() : SsdTierTest(Place::kMemory) {}

    static constexpr std::size_t kPayload = 3'500;  ///< A sector each, with all that it takes.
    static constexpr std::size_t kSegments = 24;
    static constexpr std::size_t kBlocks = kSegments * kSegment / kSsdSectorBytes;  ///< That fit.

    [[nodiscard]] SsdOptions small() {
        SsdOptions small = options();
        small.bytes = kSegments * kSegment;
        return small;
    }
    static Chain chain_of(const std::string& text, std::size_t count) {
        return make_chain(text, count, "acme", Retention::kChat, kPayload);
    }
    /// `count` more blocks that follow `chain`'s.
    static void append(Chain& chain, const std::string& text, std::size_t count) {
        BlockKey parent = parse_block_name(chain.back().name)->key;
        for (std::size_t i = 0; i < count; ++i) {
            const BlockKey key = sha256(text + "/" + std::to_string(i));
            chain.push_back(
                {.name = to_wire({.tenant = "acme", .retention = Retention::kChat, .key = key}),
                 .value = block_value(key, parent, std::string(kPayload, 'x'))});
            parent = key;
        }
    }
    void put_block(const TestBlock& block, std::optional<std::int64_t> seconds = {}) {
        std::optional<SsdTier::Time> expires;
        if (seconds) expires = now() + std::chrono::seconds(*seconds);
        while (!tier_->put(block.name, block.value, expires, Retention::kChat)) ASSERT_TRUE(sync());
    }
    /// `lanes` chains at a time, one block of each after the other, up to three times the tier's bytes.
    std::vector<Chain> fill(std::size_t lanes, std::size_t length) {
        std::vector<Chain> chains;
        std::vector<std::size_t> chain_of_lane(lanes);
        std::vector<std::size_t> next(lanes, length);
        for (std::size_t i = 0; i < 3 * kBlocks; ++i) {
            const std::size_t lane = i % lanes;
            if (next[lane] == length) {
                chain_of_lane[lane] = chains.size();
                chains.push_back(chain_of(std::to_string(chains.size()), length));
                // At first they start at different places, so that they don't end together later.
                next[lane] = i < lanes ? lane * length / lanes : 0;
            }
            put_block(chains[chain_of_lane[lane]][next[lane]++]);
            if (i % 100 == 0) {
                EXPECT_LE(tier_->stats().bytes, kSegments * kSegment);
            }
        }
        EXPECT_TRUE(sync());
        return chains;
    }
    std::set<std::string> alive() {
        std::set<std::string> alive;
        tier_->for_each([&](const SsdTier::Entry& entry) { alive.insert(entry.name); });
        return alive;
    }
    static std::size_t usable(const std::vector<Chain>& chains,
                              const std::set<std::string>& alive) {
        std::set<std::string> usable;
        for (const Chain& chain : chains) {
            for (const TestBlock& block : chain) {
                if (!alive.contains(block.name)) break;
                usable.insert(block.name);
            }
        }
        return usable.size();
    }
    /// All that is left can be loaded, it is much, and it has cost little.
    void expect_whole(const std::vector<Chain>& chains) {
        const std::set<std::string> left = alive();
        EXPECT_EQ(usable(chains, left), left.size());
        EXPECT_GT(left.size(), kBlocks / 2);
        const SsdStats stats = tier_->stats();
        EXPECT_LE(stats.bytes, kSegments * kSegment);
        EXPECT_LE(stats.carried_bytes, stats.user_bytes / 5);
        EXPECT_GT(stats.reclaims, 2 * kSegments);
    }
    bool touch(const TestBlock& block, std::int64_t seconds) {
        return tier_->touch(block.name, now() + std::chrono::seconds(seconds), now());
    }
};

TEST_F(SsdChainTest, OfLongChainsAllThatIsLeftCanBeLoaded) {
    open(small());
    expect_whole(fill(1, 600));  // Each longer than two segments.
}

TEST_F(SsdChainTest, OfManyChainsAtATimeAllThatIsLeftCanBeLoaded) {
    open(small());
    expect_whole(fill(20, 150));  // Each all over twelve segments.
}

TEST_F(SsdChainTest, WhatAllFollowStaysThoughNobodyReadsIt) {
    open(small());
    const Chain prefix = chain_of("prefix", 30);
    for (const TestBlock& block : prefix) put_block(block);
    std::vector<Chain> chains;
    while (chains.size() * 40 < 3 * kBlocks) {
        chains.push_back(prefix);
        append(chains.back(), std::to_string(chains.size()), 40);
        for (std::size_t i = prefix.size(); i < chains.back().size(); ++i)
            put_block(chains.back()[i]);
    }
    ASSERT_TRUE(sync());
    expect_whole(chains);
    const std::set<std::string> left = alive();
    for (const TestBlock& block : prefix) EXPECT_TRUE(left.contains(block.name));
}

TEST_F(SsdChainTest, ItIsTheSameAfterARestart) {
    open(small());
    std::vector<Chain> chains = fill(20, 150);
    open(small());
    EXPECT_EQ(tier_->stats().torn_segments, 0U);
    // Blocks that follow nothing make room for themselves, among what was found at the start.
    for (std::size_t i = 0; i < kBlocks / 2; ++i) {
        chains.push_back(chain_of("alone" + std::to_string(i), 1));
        put_block(chains.back().front());
    }
    ASSERT_TRUE(sync());
    const std::set<std::string> left = alive();
    EXPECT_EQ(usable(chains, left), left.size());
    EXPECT_GT(tier_->stats().reclaims, kSegments / 4);
}

TEST_F(SsdChainTest, AUseOfTheEndIsOneOfAllBeforeIt) {
    open();
    const Chain chain = chain_of("used", 20);
    const Chain other = chain_of("idle", 20);
    for (const TestBlock& block : chain) put_block(block, 3600);
    for (const TestBlock& block : other) put_block(block, 3600);
    ASSERT_TRUE(sync());
    for (int restarts = 0; restarts < 3; ++restarts) {
        now_ += 3000;
        EXPECT_TRUE(touch(chain.back(), 3600));
        ASSERT_TRUE(sync());
        open();
    }
    now_ += 1000;
    const std::set<std::string> left = alive();
    for (const TestBlock& block : chain) EXPECT_TRUE(left.contains(block.name));
    for (const TestBlock& block : other) EXPECT_FALSE(left.contains(block.name));
}

TEST_F(SsdChainTest, OfAUsedEndNothingBeforeItGoes) {
    open(small());
    const Chain chain = chain_of("used", 40);
    for (const TestBlock& block : chain) put_block(block);
    for (std::size_t i = 0; i < 2 * kBlocks; ++i) {
        put_block(chain_of(std::to_string(i), 1).front());
        if (i % 1'000 == 0) {
            ASSERT_TRUE(touch(chain.back(), 3600)) << i;
        }
    }
    ASSERT_TRUE(sync());
    const std::set<std::string> left = alive();
    for (const TestBlock& block : chain) EXPECT_TRUE(left.contains(block.name));
}

// More is used than can be carried, and so the start that all have in common is lost. Those who come for
// what is behind it compute the hole: nothing else is lost with it.
TEST_F(SsdChainTest, WhatIsUsedOutlivesAHoleBeforeIt) {
    open(small());
    Chain first = chain_of("first", kSegment / kSsdSectorBytes * 3 / 4);
    const Chain prefix = chain_of("prefix", 2);
    first.insert(first.end(), prefix.begin(), prefix.end());
    for (const TestBlock& block : first) put_block(block);
    ASSERT_TRUE(sync());
    EXPECT_TRUE(touch(first[first.size() - 3], 3600));
    std::size_t least = kBlocks;
    for (std::size_t i = 0; tier_->stats().reclaims < 3 * kSegments; ++i) {
        Chain chain = prefix;
        append(chain, std::to_string(i), 40);
        for (std::size_t at = prefix.size(); at < chain.size(); ++at) put_block(chain[at]);
        ASSERT_TRUE(sync());
        ASSERT_TRUE(touch(chain.back(), 3600));
        if (tier_->stats().reclaims > 0) least = std::min(least, alive().size());
    }
    EXPECT_FALSE(alive().contains(prefix.front().name));
    EXPECT_GT(least, kBlocks / 2);
}

TEST_F(SsdChainTest, ATornSegmentsBlocksAreKnownByTheirValues) {
    open();
    const Chain chain = chain_of("torn", 10);
    for (const TestBlock& block : chain) put_block(block, 3600);
    ASSERT_TRUE(sync());
    // As a crash now would leave it.
    const std::string copy = folder_.path() + ".copy";
    fs::copy(folder_.path(), copy);
    tier_.reset();
    for (const auto& file : fs::directory_iterator(copy))
        fs::copy(file.path(), folder_.path(), fs::copy_options::overwrite_existing);
    fs::remove_all(copy);
    open();
    EXPECT_EQ(tier_->stats().torn_segments, 1U);
    now_ += 3000;
    EXPECT_TRUE(touch(chain.back(), 3600));
    now_ += 1000;
    EXPECT_TRUE(tier_->contains(chain.front().name, now()));
}

TEST(SsdKinTest, ABlockIsOneOfWhateverClass) {
    const Chain chat = make_chain("a", 2, "acme", Retention::kChat);
    const Chain agent = make_chain("a", 2, "acme", Retention::kAgent);
    const Chain other = make_chain("a", 2, "other", Retention::kChat);
    EXPECT_EQ(ssd_kin(chat[0].name), ssd_kin(agent[0].name));
    EXPECT_EQ(ssd_parent(chat[1].name, chat[1].value.bytes), ssd_kin(agent[0].name));
    EXPECT_NE(ssd_kin(chat[0].name), ssd_kin(chat[1].name));
    EXPECT_NE(ssd_kin(chat[0].name), ssd_kin(other[0].name));
}

TEST(SsdKinTest, OtherValuesStandAlone) {
    const Chain chain = make_chain("a", 2);
    EXPECT_EQ(ssd_parent("plain", chain[1].value.bytes), kSsdNoKin);
    EXPECT_EQ(ssd_parent(chain[1].name, "no block"), kSsdNoKin);
    EXPECT_EQ(ssd_parent(chain[1].name, chain[1].value.bytes.substr(0, 100)), kSsdNoKin);
    EXPECT_EQ(ssd_parent("kv:", ""), kSsdNoKin);
    for (const char* name : {"", ":", "kv:", "kv::", "kv:::", "kv:a:b", "a:b:c"})
        EXPECT_NE(ssd_kin(name), kSsdNoKin) << name;
    EXPECT_NE(ssd_kin("kv:a:b"), ssd_kin("kv:a:c"));
}

}  // namespace
}  // namespace sluice::kv
