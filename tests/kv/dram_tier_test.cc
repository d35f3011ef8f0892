#include "kv/dram_tier.h"

#include <atomic>
#include <random>
#include <thread>

#include "base/limits.h"
#include "base/process_stats.h"
#include "tests/kv/block_maker.h"

namespace sluice::kv {
namespace {

using namespace std::chrono_literals;
using Stored = DramTier::Stored;

constexpr WallTime kNow{1'000'000h};
constexpr std::size_t kMiB = 1024 * 1024;

/// What a block of `make_chain` takes, but for the table.
std::size_t block_cost(std::size_t payload_bytes = 10'000) {
    const TestBlock block = make_chain("x", 1, "acme", Retention::kChat, payload_bytes).front();
    return entry_cost(block.name.size(), block.value.bytes.size());
}

void put_all(DramTier& tier, const std::vector<TestBlock>& chain, WallTime now = kNow) {
    for (const TestBlock& block : chain)
        EXPECT_EQ(tier.put(block.name, block.value, now), Stored::kStored) << block.name;
}

std::string here(const DramTier& tier, const std::vector<TestBlock>& chain, WallTime now = kNow) {
    std::string which;
    for (const TestBlock& block : chain) which += tier.contains(block.name, now) ? '1' : '0';
    return which;
}

/// Room for so many blocks of `make_chain`, and a few places for what isn't here.
DramTier::Options room_for(std::size_t blocks) {
    return {.bytes = blocks * block_cost() + 8'192, .tenant_bytes = 0, .retention = {}};
}

TEST(DramTierTest, AReadIsTheVeryValueThatWasWritten) {
    DramTier tier({.bytes = kMiB});
    const auto chain = make_chain("a", 2);
    put_all(tier, chain);
    const SharedBytes read = tier.get(chain[1].name, kNow);
    EXPECT_EQ(read.bytes.data(), chain[1].value.bytes.data());
    EXPECT_EQ(read.owner, chain[1].value.owner);
    EXPECT_FALSE(tier.get("kv:acme:chat:nothing", kNow));
    EXPECT_EQ(tier.stats().hits, 1U);
    EXPECT_EQ(tier.stats().misses, 1U);
}

TEST(DramTierTest, AValueOutlivesItsEvictionForWhoHasIt) {
    DramTier tier(room_for(1));
    const auto first = make_chain("a", 1);
    put_all(tier, first);
    const SharedBytes read = tier.get(first[0].name, kNow);
    put_all(tier, make_chain("b", 1));
    EXPECT_FALSE(tier.contains(first[0].name, kNow));
    EXPECT_TRUE(decode_block(read.bytes));
}

// ---- Blocks ---------------------------------------------------------------------------------------

TEST(DramTierTest, TheSameBlockAgainIsNoNews) {
    DramTier tier({.bytes = kMiB});
    const auto block = make_chain("a", 1).front();
    EXPECT_EQ(tier.put(block.name, block.value, kNow), Stored::kStored);
    const std::size_t bytes = tier.bytes();
    EXPECT_EQ(tier.put(block.name, make_chain("a", 1).front().value, kNow), Stored::kWasThere);
    EXPECT_EQ(tier.bytes(), bytes);
    EXPECT_EQ(tier.get(block.name, kNow).owner, block.value.owner);
}

TEST(DramTierTest, AnotherPayloadUnderOneNameIsAViolationAndTheFirstStays) {
    DramTier tier({.bytes = kMiB});
    const BlockKey key = sha256("key");
    const std::string name = to_wire({.tenant = "acme", .retention = Retention::kChat, .key = key});
    const SharedBytes first = block_value(key, sha256("root"), "one");
    EXPECT_EQ(tier.put(name, first, kNow), Stored::kStored);
    EXPECT_EQ(tier.put(name, block_value(key, sha256("root"), "two"), kNow), Stored::kDiffers);
    EXPECT_EQ(tier.get(name, kNow).owner, first.owner);
    EXPECT_EQ(tier.stats().differs, 1U);
}

TEST(DramTierTest, WhatIsNotTheBlockOfItsNameIsRefused) {
    DramTier tier({.bytes = kMiB});
    const auto chain = make_chain("a", 2);
    EXPECT_EQ(tier.put(chain[0].name, chain[1].value, kNow), Stored::kRefused);
    EXPECT_EQ(tier.put(chain[0].name, SharedBytes::own("something"), kNow), Stored::kRefused);
    EXPECT_EQ(tier.put(chain[0].name, {}, kNow), Stored::kRefused);
    EXPECT_EQ(tier.stats().corrupt, 2U);
    EXPECT_EQ(tier.stats().refused, 3U);
    EXPECT_EQ(tier.entries(), 0U);
}

TEST(DramTierTest, TheClassThatKeepsNothingKeepsNothing) {
    DramTier tier({.bytes = kMiB});
    const auto block = make_chain("a", 1, "acme", Retention::kNone).front();
    EXPECT_EQ(tier.put(block.name, block.value, kNow), Stored::kRefused);
}

// ---- Eviction -------------------------------------------------------------------------------------

TEST(DramTierTest, AChainGoesFromItsTail) {
    DramTier tier(room_for(6));
    const auto chain = make_chain("a", 4);
    put_all(tier, chain);
    put_all(tier, make_chain("b", 3));
    EXPECT_EQ(here(tier, chain), "1110");
    put_all(tier, make_chain("c", 1));
    EXPECT_EQ(here(tier, chain), "1100");
}

TEST(DramTierTest, TheOrderOfReadsWithinARequestDoesNotMatter) {
    for (const bool backwards : {false, true}) {
        DramTier tier(room_for(7));
        const auto used = make_chain("used", 3);
        const auto idle = make_chain("idle", 3);
        put_all(tier, used);
        put_all(tier, idle);
        for (std::size_t i = 0; i < used.size(); ++i)
            EXPECT_TRUE(tier.get(used[backwards ? 2 - i : i].name, kNow));
        put_all(tier, make_chain("new", 3));
        EXPECT_EQ(here(tier, used), "111");
        EXPECT_EQ(here(tier, idle), "100");
    }
}

TEST(DramTierTest, BlocksThatComeBackwardsAreAChainAllTheSame) {
    DramTier tier(room_for(4));
    const auto chain = make_chain("a", 3);
    for (const std::size_t i : {2U, 0U, 1U})
        EXPECT_EQ(tier.put(chain[i].name, chain[i].value, kNow), Stored::kStored);
    put_all(tier, make_chain("b", 2));
    EXPECT_EQ(here(tier, chain), "110");
}

TEST(DramTierTest, AHoleStaysAHoleAndTheRestOfItsChainGoesInOrder) {
    DramTier tier(room_for(4));
    const auto chain = make_chain("a", 3);
    put_all(tier, chain);
    EXPECT_TRUE(tier.erase(chain[1].name));
    EXPECT_EQ(here(tier, chain), "101");
    put_all(tier, make_chain("b", 3));
    EXPECT_EQ(here(tier, chain), "100");
}

TEST(DramTierTest, ABlockBehindOneOfTheOtherClassHoldsIt) {
    DramTier tier(room_for(3));
    const auto agent = make_chain("a", 1, "acme", Retention::kAgent);
    const auto chat = make_chain("a", 2, "acme", Retention::kChat);
    put_all(tier, agent);
    EXPECT_EQ(tier.put(chat[1].name, chat[1].value, kNow), Stored::kStored);
    put_all(tier, make_chain("b", 2));
    EXPECT_EQ(here(tier, agent), "1");
    EXPECT_FALSE(tier.contains(chat[1].name, kNow));
}

TEST(DramTierTest, AChainThatFillsTheTierKeepsItsStart) {
    DramTier tier(room_for(4));
    const auto chain = make_chain("a", 8);
    std::size_t stored = 0;
    while (tier.put(chain[stored].name, chain[stored].value, kNow) == Stored::kStored) ++stored;
    EXPECT_EQ(stored, 4U);
    EXPECT_EQ(here(tier, chain), "11110000");
}

TEST(DramTierTest, FilledThreeTimesOverItStaysWithinItsLimit) {
    const std::size_t limit = 4 * kMiB;
    DramTier tier({.bytes = limit});
    std::mt19937_64 random(1);
    std::size_t written = 0;
    std::size_t most = 0;
    for (int i = 0; written < 3 * limit; ++i) {
        const auto chain = make_chain(std::to_string(i), 1 + random() % 6, "acme",
                                      Retention::kAgent, random() % 20'000);
        for (const TestBlock& block : chain) {
            EXPECT_EQ(tier.put(block.name, block.value, kNow), Stored::kStored);
            written += block.value.bytes.size();
            ASSERT_LE(tier.bytes(), limit);
            most = std::max(most, tier.bytes());
        }
    }
    EXPECT_GT(most, limit * 95 / 100);
    EXPECT_GT(tier.stats().removed[static_cast<std::size_t>(Removal::kEvicted)], 0U);
}

TEST(DramTierTest, TooLargeAValueEvictsNothing) {
    DramTier tier({.bytes = 100'000});
    put_all(tier, make_chain("a", 3));
    EXPECT_EQ(tier.put("big", SharedBytes::own(std::string(200'000, 'x')), kNow), Stored::kRefused);
    EXPECT_EQ(tier.put(std::string(limits::kKvNameBytes + 1, 'n'), SharedBytes::own("x"), kNow),
              Stored::kRefused);
    EXPECT_EQ(tier.entries(), 3U);
}

TEST(DramTierTest, ATenantMakesRoomAmongItsOwnBelowItsBound) {
    DramTier tier({.bytes = kMiB, .tenant_bytes = 4 * block_cost() + 2'000, .retention = {}});
    const auto small = make_chain("a", 2, "small");
    put_all(tier, small);
    for (int i = 0; i < 20; ++i) put_all(tier, make_chain(std::to_string(i), 2, "large"));
    EXPECT_EQ(here(tier, small), "11");
    const DramStats stats = tier.stats();
    ASSERT_EQ(stats.tenants.size(), 2U);
    EXPECT_EQ(stats.tenants[0].name, "large");
    EXPECT_LE(stats.tenants[0].bytes, tier.options().tenant_bytes);
    EXPECT_GE(stats.tenants[0].entries, 3U);
    EXPECT_EQ(stats.tenants[0].over_bound,
              stats.removed[static_cast<std::size_t>(Removal::kTenantBound)]);
}

TEST(DramTierTest, ATenantWithABoundOfItsOwnKeepsToThatOne) {
    DramTier tier({.bytes = kMiB, .tenant_bytes = 4 * block_cost() + 2'000, .retention = {}});
    tier.bound_tenants({{"poor", 2 * block_cost() + 2'000}, {"rich", 9 * block_cost() + 2'000}});
    for (int i = 0; i < 20; ++i)
        for (const char* tenant : {"poor", "rich", "usual"})
            put_all(tier, make_chain(std::to_string(i), 1, tenant));
    const DramStats stats = tier.stats();
    ASSERT_EQ(stats.tenants.size(), 3U);
    EXPECT_LE(stats.tenants[0].entries, 2U);
    EXPECT_GE(stats.tenants[1].entries, 8U);
    EXPECT_LE(stats.tenants[1].entries, 9U);
    EXPECT_GE(stats.tenants[2].entries, 3U);
    EXPECT_LE(stats.tenants[2].entries, 4U);
}

TEST(DramTierTest, ALowerBoundHoldsAtOnceForAllThatIsNotPinned) {
    DramTier tier({.bytes = kMiB});
    const auto chain = make_chain("a", 6, "acme");
    put_all(tier, chain);
    put_all(tier, make_chain("b", 6, "other"));
    ASSERT_TRUE(tier.pin(chain[2].name, kNow + 1h, kNow));
    tier.bound_tenants({{"acme", 1}});
    // What it builds on stays as well.
    EXPECT_EQ(here(tier, chain), "111000");
    EXPECT_EQ(tier.stats().tenants[1].entries, 6U);
    tier.bound_tenants({});
    put_all(tier, {chain.begin() + 3, chain.end()});
    EXPECT_EQ(here(tier, chain), "111111");
}

TEST(DramTierTest, OfATenantThatGetsABoundTheLeastUsedGoesFirst) {
    DramTier tier({.bytes = kMiB});
    const auto used = make_chain("a", 3, "acme");
    const auto idle = make_chain("b", 3, "acme");
    put_all(tier, used);
    put_all(tier, idle);
    for (int i = 0; i < 3; ++i)
        for (const TestBlock& block : used) EXPECT_TRUE(tier.get(block.name, kNow));
    // The start of a chain whose end comes first: its place is held by what follows.
    const auto late = make_chain("c", 2, "acme");
    tier.put(late[1].name, late[1].value, kNow);
    tier.bound_tenants({{"acme", 4 * block_cost() + 2'000}});
    EXPECT_EQ(here(tier, used), "111");
    EXPECT_EQ(here(tier, idle), "000");
    tier.put(late[0].name, late[0].value, kNow);
    for (int i = 0; i < 30; ++i) put_all(tier, make_chain(std::to_string(i), 2, "acme"));
    EXPECT_LE(tier.stats().tenants[0].bytes, 4 * block_cost() + 2'000);
}

// ---- Time -----------------------------------------------------------------------------------------

TEST(DramTierTest, ABlockLivesAsLongAsItsClassSaysAfterItsLastUse) {
    DramTier tier({.bytes = kMiB});
    const auto agent = make_chain("a", 1, "acme", Retention::kAgent).front();
    const auto chat = make_chain("b", 1, "acme", Retention::kChat).front();
    tier.put(agent.name, agent.value, kNow);
    tier.put(chat.name, chat.value, kNow);
    EXPECT_EQ(tier.time_left(agent.name, kNow), 72h);
    EXPECT_EQ(tier.time_left(chat.name, kNow), 168h);
    EXPECT_TRUE(tier.get(agent.name, kNow + 71h));
    EXPECT_EQ(tier.time_left(agent.name, kNow + 71h), 72h);
    EXPECT_TRUE(tier.contains(agent.name, kNow + 142h));
    EXPECT_FALSE(tier.get(agent.name, kNow + 143h));
    EXPECT_TRUE(tier.touch(chat.name, kNow + 100h));
    EXPECT_TRUE(tier.get(chat.name, kNow + 267h));
    EXPECT_EQ(tier.stats().removed[static_cast<std::size_t>(Removal::kExpired)], 1U);
}

TEST(DramTierTest, AUseOfAChainsEndKeepsItsStartAlive) {
    DramTier tier({.bytes = kMiB});
    const auto chain = make_chain("a", 5);
    put_all(tier, chain);
    EXPECT_TRUE(tier.get(chain.back().name, kNow + 160h));
    EXPECT_EQ(here(tier, chain, kNow + 300h), "11111");
}

TEST(DramTierTest, SweepingFreesWhatIsOver) {
    DramTier tier({.bytes = kMiB});
    const std::size_t empty = tier.bytes();
    for (int i = 0; i < 20; ++i) put_all(tier, make_chain(std::to_string(i), 3));
    tier.put("plain", SharedBytes::own("value"), {.expires = kNow + 1s}, kNow);
    std::size_t swept = 0;
    for (int i = 0; i < 100; ++i) swept += tier.sweep(10, kNow + 2s);
    EXPECT_EQ(swept, 1U);
    for (int i = 0; i < 100; ++i) swept += tier.sweep(10, kNow + 169h);
    EXPECT_EQ(swept, 61U);
    EXPECT_EQ(tier.bytes(), empty);
}

TEST(DramTierTest, PlainNamesLiveAsTheirWriterSays) {
    DramTier tier({.bytes = kMiB});
    tier.put("a", SharedBytes::own("1"), {.expires = kNow + 10s}, kNow);
    tier.put("b", SharedBytes::own("1"), kNow);
    EXPECT_EQ(tier.time_left("a", kNow), 10s);
    EXPECT_EQ(tier.time_left("b", kNow), std::chrono::milliseconds::max());
    EXPECT_EQ(tier.time_left("c", kNow), std::nullopt);
    EXPECT_TRUE(tier.get("a", kNow + 9s));
    EXPECT_FALSE(tier.get("a", kNow + 10s));  // A read doesn't lengthen it.
    EXPECT_TRUE(tier.expire("b", kNow + 1s, kNow));
    EXPECT_FALSE(tier.contains("b", kNow + 1s));
    tier.put("b", SharedBytes::own("2"), kNow + 1s);
    EXPECT_TRUE(tier.expire("b", kNow, kNow + 1s));
    EXPECT_FALSE(tier.contains("b", kNow + 1s));
    EXPECT_FALSE(tier.expire("b", kForever, kNow + 1s));
}

TEST(DramTierTest, OfAPlainNameTheLastValueCounts) {
    DramTier tier({.bytes = kMiB});
    EXPECT_EQ(tier.put("a", SharedBytes::own("1"), {.expires = kNow + 1s}, kNow), Stored::kStored);
    EXPECT_EQ(tier.put("a", SharedBytes::own("2"), kNow), Stored::kStored);
    EXPECT_EQ(tier.put("a", SharedBytes::own("3"), {.only_if_absent = true}, kNow),
              Stored::kWasThere);
    EXPECT_EQ(tier.get("a", kNow + 1h).bytes, "2");
    EXPECT_EQ(tier.entries(), 1U);
}

// ---- Leases ---------------------------------------------------------------------------------------

TEST(DramTierTest, APinnedEntryStaysUntilItsLeaseEnds) {
    DramTier tier(room_for(4));
    const auto pinned = make_chain("pinned", 1);
    put_all(tier, pinned);
    EXPECT_TRUE(tier.pin(pinned[0].name, kNow + 1h, kNow));
    for (int i = 0; i < 10; ++i) put_all(tier, make_chain(std::to_string(i), 1));
    EXPECT_EQ(here(tier, pinned), "1");
    EXPECT_EQ(tier.stats().pinned, 1U);
    put_all(tier, make_chain("later", 1), kNow + 1h);
    EXPECT_EQ(here(tier, pinned), "0");
    EXPECT_EQ(tier.stats().pinned, 0U);
    EXPECT_EQ(tier.stats().pinned_bytes, 0U);
}

TEST(DramTierTest, ALeaseCoversTheEndOfItsLife) {
    DramTier tier({.bytes = kMiB});
    tier.put("a", SharedBytes::own("1"), {.expires = kNow + 1s}, kNow);
    EXPECT_TRUE(tier.pin("a", kNow + 10s, kNow));
    EXPECT_TRUE(tier.contains("a", kNow + 9s));
    EXPECT_FALSE(tier.contains("a", kNow + 10s));
}

TEST(DramTierTest, LeasesEndEarlyMoveAndAreBounded) {
    DramTier tier(room_for(4));
    const auto chain = make_chain("a", 3);
    put_all(tier, chain);
    EXPECT_FALSE(tier.pin("nothing", kNow + 1h, kNow));
    EXPECT_TRUE(tier.pin(chain[0].name, kNow + 1h, kNow));
    EXPECT_TRUE(tier.pin(chain[0].name, kNow + 2h, kNow));
    EXPECT_EQ(tier.stats().pinned, 1U);
    EXPECT_TRUE(tier.pin(chain[1].name, kNow + 1h, kNow));
    EXPECT_FALSE(tier.pin(chain[2].name, kNow + 1h, kNow));  // More than half of the tier.
    EXPECT_TRUE(tier.pin(chain[0].name, kNow, kNow));
    EXPECT_TRUE(tier.pin(chain[2].name, kNow + 10'000h, kNow));
    EXPECT_TRUE(tier.erase(chain[2].name));
    EXPECT_TRUE(tier.erase(chain[1].name));
    EXPECT_EQ(tier.stats().pinned_bytes, 0U);
}

TEST(DramTierTest, ATierFullOfLeasesRefuses) {
    DramTier tier({.bytes = 40'000});
    ASSERT_EQ(tier.put("a", SharedBytes::own(std::string(16'000, 'x')), kNow), Stored::kStored);
    EXPECT_TRUE(tier.pin("a", kNow + 1h, kNow));
    EXPECT_EQ(tier.put("b", SharedBytes::own(std::string(30'000, 'x')), kNow), Stored::kRefused);
    EXPECT_TRUE(tier.contains("a", kNow));
}

// ---- What comes and goes --------------------------------------------------------------------------

TEST(DramTierTest, ErasesByTenantAndClass) {
    DramTier tier({.bytes = kMiB});
    const auto fill = [&] {
        for (const char* tenant : {"a", "b"})
            for (const Retention retention : {Retention::kAgent, Retention::kChat})
                for (const TestBlock& block : make_chain("x", 3, tenant, retention))
                    tier.put(block.name, block.value, kNow);
        tier.put("plain", SharedBytes::own("1"), kNow);
    };
    fill();
    EXPECT_EQ(tier.erase_if("a", Retention::kAgent), 3U);
    EXPECT_EQ(tier.erase_if("a", std::nullopt), 3U);
    EXPECT_EQ(tier.erase_if(std::nullopt, Retention::kChat), 3U);
    EXPECT_EQ(tier.stats().agent.entries, 3U);
    EXPECT_EQ(tier.stats().other.entries, 1U);
    EXPECT_EQ(tier.erase_if(std::nullopt, std::nullopt), 4U);
    EXPECT_EQ(tier.stats().tenants.size(), 0U);
    EXPECT_EQ(tier.bytes(), DramTier({.bytes = kMiB}).bytes());
}

/// Lives through whatever happens; at each step what is here must be what the events say.
TEST(DramTierTest, EventsTellWhatIsHere) {
    std::map<std::string, std::optional<BlockKey>> followed;
    std::size_t use[2] = {0, 0};
    DramTier::Observer observer;
    observer.stored = [&](const DramTier::Item& item) {
        ASSERT_TRUE(item.block);
        EXPECT_TRUE(followed.emplace(item.name, item.block->parent).second);
        EXPECT_EQ(parse_block_name(item.name)->key, item.block->key);
    };
    observer.removed = [&](const DramTier::Item& item, Removal) {
        EXPECT_EQ(followed.erase(std::string(item.name)), 1U);
        EXPECT_TRUE(decode_block(item.value.bytes));
    };
    DramTier tier({.bytes = 60'000, .tenant_bytes = 40'000, .retention = {}}, observer);
    std::mt19937_64 random(7);
    WallTime now = kNow;
    for (int round = 0; round < 3'000; ++round) {
        now += std::chrono::minutes(random() % 300);
        const auto chain =
            make_chain(std::to_string(random() % 30), 1 + random() % 8, random() % 2 ? "a" : "b",
                       random() % 2 ? Retention::kAgent : Retention::kChat, random() % 3'000);
        const std::size_t first = random() % chain.size();
        for (std::size_t i = first; i < chain.size(); ++i)
            tier.put(chain[i].name, chain[i].value, now);
        const std::string& some = chain[random() % chain.size()].name;
        switch (random() % 8) {
            case 0: tier.erase(some, Removal::kCorrupt); break;
            case 1: tier.pin(some, now + std::chrono::hours(random() % 10), now); break;
            case 2: tier.expire(some, now + std::chrono::hours(random() % 10), now); break;
            case 3: tier.sweep(20, now); break;
            case 4: tier.erase_if("a", Retention::kChat); break;
            default: static_cast<void>(tier.get(some, now)); break;
        }
        ASSERT_LE(tier.bytes(), 60'000U);
        std::size_t met = 0;
        tier.for_each(now, [&](const DramTier::Item& item) {
            EXPECT_TRUE(followed.contains(std::string(item.name)));
            ++met;
        });
        ASSERT_LE(met, followed.size());  // What is over is not met, and not yet removed.
        ASSERT_EQ(followed.size(), tier.entries());
        const DramStats stats = tier.stats();
        use[0] = stats.agent.entries + stats.chat.entries;
        ASSERT_EQ(use[0], stats.entries);
        for (const auto& tenant : stats.tenants) ASSERT_LE(tenant.bytes, 40'000U);
    }
    tier.erase_if(std::nullopt, std::nullopt);
    EXPECT_TRUE(followed.empty());
    EXPECT_EQ(tier.bytes(), DramTier({.bytes = 60'000}).bytes());
}

TEST(DramTierTest, AScanMeetsAll) {
    DramTier tier({.bytes = kMiB});
    std::set<std::string> names;
    for (const TestBlock& block : make_chain("a", 300, "acme", Retention::kChat, 1'000)) {
        tier.put(block.name, block.value, kNow);
        names.insert(block.name);
    }
    tier.put("over", SharedBytes::own("1"), {.expires = kNow + 1s}, kNow);
    std::uint64_t cursor = 0;
    std::set<std::string> met;
    do {
        cursor = tier.scan(cursor, 10, kNow + 1s,
                           [&](const DramTier::Item& item) { met.emplace(item.name); });
    } while (cursor != 0);
    EXPECT_EQ(met, names);
}

TEST(DramTierTest, AChainThatWasMadeToBiteItsTailIsHeldByNobody) {
    DramTier tier(room_for(4));
    const BlockKey a = sha256("a");
    const BlockKey b = sha256("b");
    const auto name = [](const BlockKey& key) {
        return to_wire({.tenant = "acme", .retention = Retention::kChat, .key = key});
    };
    EXPECT_EQ(tier.put(name(a), block_value(a, b, "1"), kNow), Stored::kStored);
    EXPECT_EQ(tier.put(name(b), block_value(b, a, "2"), kNow), Stored::kStored);
    EXPECT_EQ(tier.put(name(sha256("c")), block_value(sha256("c"), sha256("c"), "3"), kNow),
              Stored::kStored);
    for (int i = 0; i < 10; ++i) put_all(tier, make_chain(std::to_string(i), 1));
    EXPECT_FALSE(tier.contains(name(a), kNow));
    EXPECT_FALSE(tier.contains(name(b), kNow));
    EXPECT_FALSE(tier.contains(name(sha256("c")), kNow));
}

TEST(DramTierTest, ThreadsShareIt) {
    DramTier tier({.bytes = 200'000});
    std::atomic<std::uint64_t> wrong{0};
    const auto work = [&](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        for (int i = 0; i < 500; ++i) {
            const auto chain = make_chain(std::to_string(random() % 40), 5);
            for (const TestBlock& block : chain) {
                const SharedBytes read = tier.get(block.name, kNow);
                if (read && read.bytes != block.value.bytes) ++wrong;
                if (!read) tier.put(block.name, block.value, kNow);
            }
            if (i % 50 == 0) tier.sweep(100, kNow);
            if (tier.bytes() > 200'000) ++wrong;
        }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0U);
}

/// So many blocks come and go; make soak asks for more.
std::uint64_t churn_blocks() {
    const char* const asked = std::getenv("SLUICE_KV_CHURN");
    return asked == nullptr ? 200'000 : std::strtoull(asked, nullptr, 10);
}

TEST(DramTierTest, MemoryStaysFlatWhileBlocksComeAndGo) {
    const std::size_t limit = 16 * kMiB;
    const std::uint64_t blocks = churn_blocks();
    DramTier tier({.bytes = limit});
    std::mt19937_64 random(3);
    std::uint64_t settled = 0;
    for (std::uint64_t put = 0; put < blocks;) {
        for (const TestBlock& block : make_chain(std::to_string(random()), 20, "acme",
                                                 Retention::kAgent, 500 + random() % 1'000)) {
            static_cast<void>(tier.get(block.name, kNow));
            EXPECT_EQ(tier.put(block.name, block.value, kNow), Stored::kStored);
            ++put;
        }
        if (settled == 0 && put >= blocks / 4) settled = read_process_stats()->resident_bytes;
    }
    EXPECT_LE(tier.bytes(), limit);
    EXPECT_GT(tier.stats().removed[0], blocks / 2);
    const std::uint64_t end = read_process_stats()->resident_bytes;
    EXPECT_LT(end, settled + settled / 20 + 4 * kMiB);
}

}  // namespace
}  // namespace sluice::kv
