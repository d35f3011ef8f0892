#include "kv/usable_prefix.h"

#include <algorithm>
#include <random>

namespace sluice::kv {
namespace {

using Parts = std::vector<std::size_t>;
using Ranges = std::vector<TokenRange>;

StoredParts parts(std::string_view text) {
    StoredParts parts;
    for (const char each : text) parts.push_back(each == '1');
    return parts;
}

UsablePrefix of_rows(std::string_view stored, std::uint64_t prompt_tokens,
                     const Component& component = {.name = "mla", .quantum = 64}) {
    const std::vector<StoredParts> all{parts(stored)};
    return usable_prefix({&component, 1}, all, prompt_tokens);
}

// ---- Rows alone: the native engine ----------------------------------------------------------------

TEST(UsablePrefixTest, RowsAreUsedAsFarAsTheyReach) {
    const UsablePrefix prefix = of_rows("111", 1'000);
    EXPECT_EQ(prefix.tokens, 192U);
    EXPECT_EQ(prefix.load[0], (Parts{0, 1, 2}));
    EXPECT_TRUE(prefix.compute.empty());
    EXPECT_EQ(prefix.saved(), 192U);
}

TEST(UsablePrefixTest, NothingStoredIsNoHit) {
    EXPECT_EQ(of_rows("", 1'000).tokens, 0U);
    EXPECT_EQ(of_rows("000", 1'000).tokens, 0U);
    EXPECT_EQ(of_rows("111", 0).tokens, 0U);
    EXPECT_EQ(of_rows("111", 1).tokens, 0U);
}

TEST(UsablePrefixTest, TheLastTokenIsAlwaysComputed) {
    EXPECT_EQ(of_rows("111", 192).tokens, 191U);
    EXPECT_EQ(of_rows("111", 192).load[0], (Parts{0, 1, 2}));
    EXPECT_EQ(of_rows("111", 193).tokens, 192U);
    EXPECT_EQ(of_rows("111", 129).load[0], (Parts{0, 1}));
}

TEST(UsablePrefixTest, AHoleIsComputedAndTheRestLoaded) {
    const UsablePrefix prefix = of_rows("1011", 1'000);
    EXPECT_EQ(prefix.tokens, 256U);
    EXPECT_EQ(prefix.load[0], (Parts{0, 2, 3}));
    EXPECT_EQ(prefix.compute, (Ranges{{64, 128}}));
    EXPECT_EQ(prefix.saved(), 192U);
}

TEST(UsablePrefixTest, AHoleAtTheStartIsNoObstacle) {
    const UsablePrefix prefix = of_rows("0011", 1'000);
    EXPECT_EQ(prefix.tokens, 256U);
    EXPECT_EQ(prefix.compute, (Ranges{{0, 128}}));
}

TEST(UsablePrefixTest, MissingBlocksBehindTheLastStoredOneAreThePromptsRest) {
    EXPECT_EQ(of_rows("1100", 1'000).tokens, 128U);
    EXPECT_TRUE(of_rows("1100", 1'000).compute.empty());
}

TEST(UsablePrefixTest, WhereHolesCannotBeComputedAHitEndsAtTheFirst) {
    const Component component{.name = "ssm", .quantum = 64, .holes = false};
    const UsablePrefix prefix = of_rows("1101", 1'000, component);
    EXPECT_EQ(prefix.tokens, 128U);
    EXPECT_EQ(prefix.load[0], (Parts{0, 1}));
}

TEST(UsablePrefixTest, AHitThatSavesTooLittleIsNone) {
    const Component component{.name = "mla", .quantum = 64, .min_hit = 192};
    EXPECT_EQ(of_rows("11", 1'000, component).tokens, 0U);
    EXPECT_TRUE(of_rows("11", 1'000, component).load[0].empty());
    EXPECT_EQ(of_rows("111", 1'000, component).tokens, 192U);
    EXPECT_EQ(of_rows("1101", 1'000, component).tokens, 256U);
    EXPECT_EQ(of_rows("1001", 1'000, component).tokens, 0U);
}

TEST(UsablePrefixTest, ComponentsOfDifferentBlocksAreWantedTogether) {
    const std::vector<Component> components{{.name = "a", .quantum = 64},
                                            {.name = "b", .quantum = 128}};
    const std::vector<StoredParts> stored{parts("11111101"), parts("1011")};
    const UsablePrefix prefix = usable_prefix(components, stored, 1'000);
    EXPECT_EQ(prefix.tokens, 512U);
    EXPECT_EQ(prefix.compute, (Ranges{{128, 256}, {384, 448}}));
    EXPECT_EQ(prefix.load[0], (Parts{0, 1, 4, 5, 7}));
    EXPECT_EQ(prefix.load[1], (Parts{0, 2, 3}));
}

// ---- Rows, a state and a replay: DeepInfer's figures ----------------------------------------------

/// Blocks of 128 tokens with 891 bytes each a token, an encoder's window of 1.42 MB at multiples of
/// 128 tokens, and a decoder's window that 140 tokens bring back.
const std::vector<Component> kDeepInfer{
    {.name = "rows", .kind = ComponentKind::kRows, .quantum = 128},
    {.name = "encoder", .kind = ComponentKind::kState, .quantum = 128},
    {.name = "decoder", .kind = ComponentKind::kState, .quantum = 128, .replay_tokens = 140}};
constexpr std::uint64_t kRowsBytes = 128 * 891;
constexpr std::uint64_t kStateBytes = 1'420'000;

UsablePrefix of_deep_infer(std::string_view rows, std::string_view states,
                           std::uint64_t prompt_tokens) {
    const std::vector<StoredParts> stored{parts(rows), parts(states), {}};
    return usable_prefix(kDeepInfer, stored, prompt_tokens);
}

std::uint64_t loaded_bytes(const UsablePrefix& prefix) {
    return prefix.load[0].size() * kRowsBytes + prefix.load[1].size() * kStateBytes;
}

TEST(UsablePrefixTest, AHitEndsAReplayBehindTheLastStateThatRowsReach) {
    // States at 512 and 1024 only; rows to 1280.
    const UsablePrefix prefix = of_deep_infer("1111111111", "00010001", 4'000);
    EXPECT_EQ(prefix.tokens, 1'024U + 140U);
    EXPECT_EQ(prefix.compute, (Ranges{{1'024, 1'164}}));
    EXPECT_EQ(prefix.saved(), 1'024U);
    EXPECT_EQ(prefix.load[1], (Parts{7}));
    EXPECT_EQ(prefix.load[0].size(), 10U);
    EXPECT_TRUE(prefix.load[2].empty());
    EXPECT_EQ(loaded_bytes(prefix), 10 * kRowsBytes + kStateBytes);
}

TEST(UsablePrefixTest, AStateWhoseReplayHasNoRowsIsOfNoUse) {
    // Rows to 1152 don't cover 1024 + 140.
    const UsablePrefix prefix = of_deep_infer("111111111", "00010001", 4'000);
    EXPECT_EQ(prefix.tokens, 512U + 140U);
    EXPECT_EQ(prefix.load[1], (Parts{3}));
}

TEST(UsablePrefixTest, RowsWithoutAStateAreNoHit) {
    EXPECT_EQ(of_deep_infer("11111111", "", 4'000).tokens, 0U);
    EXPECT_EQ(of_deep_infer("11111111", "0000", 4'000).tokens, 0U);
}

TEST(UsablePrefixTest, AHoleIsComputedFromTheLastStateThatAReplayLiesBetween) {
    // The hole is at 768..896; the state at 640 is 128 tokens before it, which is not enough.
    const UsablePrefix prefix = of_deep_infer("11111101111111111111", "000110000000001", 4'000);
    EXPECT_EQ(prefix.compute, (Ranges{{512, 896}, {1'920, 2'060}}));
    EXPECT_EQ(prefix.tokens, 2'060U);
    EXPECT_EQ(prefix.load[1], (Parts{3, 14}));
    // What is computed before it is right again must be there; what is computed after it need not.
    EXPECT_EQ(std::ranges::count(prefix.load[0], 4U), 1);
    EXPECT_EQ(std::ranges::count(prefix.load[0], 6U), 0);
}

/// A state, and no replay.
UsablePrefix of_windows(std::string_view rows, std::string_view states) {
    const std::vector<Component> components{
        {.name = "rows", .kind = ComponentKind::kRows, .quantum = 128},
        {.name = "state", .kind = ComponentKind::kState, .quantum = 128}};
    const std::vector<StoredParts> stored{parts(rows), parts(states)};
    return usable_prefix(components, stored, 4'000);
}

TEST(UsablePrefixTest, AHoleThatCostsLessThanItBringsIsComputed) {
    const UsablePrefix prefix = of_windows("11110111", "01000001");
    EXPECT_EQ(prefix.tokens, 1'024U);
    EXPECT_EQ(prefix.compute, (Ranges{{256, 640}}));
    EXPECT_EQ(prefix.load[0], (Parts{0, 1, 5, 6, 7}));
    EXPECT_EQ(prefix.load[1], (Parts{1, 7}));
}

TEST(UsablePrefixTest, AHoleThatCostsAllThatItBringsEndsTheHit) {
    const UsablePrefix prefix = of_windows("11111110", "10000001");
    EXPECT_EQ(prefix.tokens, 128U);
    EXPECT_TRUE(prefix.compute.empty());
}

TEST(UsablePrefixTest, StatesAloneEndAHitAtABoundary) {
    const std::vector<Component> components{
        {.name = "rows", .kind = ComponentKind::kRows, .quantum = 64},
        {.name = "state", .kind = ComponentKind::kState, .quantum = 128}};
    const std::vector<StoredParts> stored{parts("1111111"), parts("101")};
    const UsablePrefix prefix = usable_prefix(components, stored, 1'000);
    EXPECT_EQ(prefix.tokens, 384U);
    EXPECT_EQ(prefix.load[0], (Parts{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(prefix.load[1], (Parts{2}));
    EXPECT_EQ(usable_prefix(components, stored, 384).tokens, 128U);
}

// ---- Any components, any holes --------------------------------------------------------------------

/// Plays a plan token by token: everything it relies on must be there.
void expect_sound(const std::vector<Component>& components, const std::vector<StoredParts>& stored,
                  const UsablePrefix& prefix) {
    std::uint64_t replay = 0;
    for (const Component& each : components)
        replay = std::max<std::uint64_t>(replay, each.replay_tokens);
    const auto loaded = [&](std::size_t component, std::size_t part) {
        return std::ranges::count(prefix.load[component], part) == 1;
    };
    std::vector<char> right(prefix.tokens, 0);  // Computed by a model whose state is right.
    std::uint64_t last_end = 0;
    for (const TokenRange& range : prefix.compute) {
        ASSERT_TRUE(range.begin < range.end && range.begin >= last_end &&
                    range.end <= prefix.tokens);
        last_end = range.end;
        for (std::uint64_t i = range.begin + (range.begin > 0 ? replay : 0); i < range.end; ++i)
            right[i] = 1;
    }
    const bool ends_computed = last_end > 0 && last_end == prefix.tokens;
    for (std::size_t i = 0; i < components.size(); ++i) {
        const Component& component = components[i];
        for (const std::size_t part : prefix.load[i]) EXPECT_TRUE(stored[i][part]);
        if (component.replay_tokens > 0) {
            const bool replayed =
                ends_computed && (prefix.compute.back().begin == 0 ||
                                  prefix.compute.back().tokens() >= component.replay_tokens);
            EXPECT_TRUE(replayed || prefix.tokens == 0);
        } else if (component.kind == ComponentKind::kState) {
            for (const TokenRange& range : prefix.compute)
                EXPECT_TRUE(range.begin == 0 || (range.begin % component.quantum == 0 &&
                                                 loaded(i, range.begin / component.quantum - 1)));
            if (!ends_computed && prefix.tokens > 0) {
                EXPECT_TRUE(prefix.tokens % component.quantum == 0 &&
                            loaded(i, prefix.tokens / component.quantum - 1));
            }
        } else {
            for (std::uint64_t token = 0; token < prefix.tokens; ++token)
                EXPECT_TRUE(right[token] || loaded(i, token / component.quantum)) << token;
        }
    }
}

/// The most that any hit can save, without cleverness: every end and, token by token, every computing.
std::uint64_t most_saved(const std::vector<Component>& components,
                         const std::vector<StoredParts>& stored, std::uint64_t prompt_tokens) {
    std::uint64_t replay = 0;
    bool states = false;
    for (const Component& each : components) {
        replay = std::max<std::uint64_t>(replay, each.replay_tokens);
        states = states || (each.kind == ComponentKind::kState && each.replay_tokens == 0);
    }
    const auto has = [&](std::size_t i, std::uint64_t part) {
        return part < stored[i].size() && stored[i][part];
    };
    const auto start_at = [&](std::uint64_t token) {  // All states are there.
        for (std::size_t i = 0; i < components.size(); ++i)
            if (components[i].kind == ComponentKind::kState && components[i].replay_tokens == 0 &&
                (token % components[i].quantum != 0 || !has(i, token / components[i].quantum - 1)))
                return false;
        return true;
    };
    const auto start_before = [&](std::uint64_t token) {
        if (token <= replay) return std::uint64_t{0};
        std::uint64_t start = token - replay;
        while (states && start > 0 && !start_at(start)) --start;
        return start;
    };
    std::uint64_t most = 0;
    for (std::uint64_t end = 1; end < prompt_tokens; ++end) {
        std::vector<char> computed(end, 0);
        const std::uint64_t start = start_before(end);
        for (std::uint64_t i = start; i < end; ++i) computed[i] = 1;
        for (std::size_t i = 0; i < components.size(); ++i) {
            const Component& component = components[i];
            if (component.kind != ComponentKind::kRows || component.replay_tokens > 0) continue;
            for (std::uint64_t block = 0; block * component.quantum < end; ++block) {
                if (has(i, block)) continue;
                const std::uint64_t until =
                    std::min<std::uint64_t>(end, (block + 1) * component.quantum);
                for (std::uint64_t at = start_before(block * component.quantum); at < until; ++at)
                    computed[at] = 1;
            }
        }
        most = std::max<std::uint64_t>(
            most, end - static_cast<std::uint64_t>(std::ranges::count(computed, 1)));
    }
    return most;
}

TEST(UsablePrefixTest, ItIsSoundAndNoneSavesMoreWhateverIsStored) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 600; ++round) {
        std::vector<Component> components{{.name = "a", .quantum = 4}};
        if (random() % 2) components.push_back({.name = "b", .quantum = 6});
        if (random() % 2)
            components.push_back({.name = "s", .kind = ComponentKind::kState, .quantum = 8});
        if (random() % 3 == 0)
            components.push_back({.name = "t", .kind = ComponentKind::kState, .quantum = 12});
        if (random() % 2)
            components.push_back({.name = "w",
                                  .kind = ComponentKind::kState,
                                  .replay_tokens = 1 + static_cast<std::uint32_t>(random() % 13)});
        std::vector<StoredParts> stored;
        const std::uint64_t missing = 2 + random() % 6;
        for (const Component& each : components) {
            StoredParts& has = stored.emplace_back();
            for (std::uint64_t i = 0; i < random() % 30 + 60 / each.quantum; ++i)
                has.push_back(random() % missing != 0);
        }
        const std::uint64_t prompt = 1 + random() % 100;
        const UsablePrefix prefix = usable_prefix(components, stored, prompt);
        EXPECT_LT(prefix.tokens, prompt);
        expect_sound(components, stored, prefix);
        EXPECT_EQ(prefix.saved(), most_saved(components, stored, prompt)) << round;
    }
}

TEST(UsablePrefixTest, AMillionTokensFullOfHolesArePlannedAtOnce) {
    StoredParts rows;
    for (int i = 0; i < 16'384; ++i) rows.push_back(i % 2 == 0);
    const std::vector<StoredParts> stored{rows};
    const Component component{.name = "mla", .quantum = 64};
    const UsablePrefix prefix = usable_prefix({&component, 1}, stored, 2'000'000);
    EXPECT_EQ(prefix.saved(), 8'192U * 64U);
    EXPECT_EQ(prefix.compute.size(), 8'191U);
}

}  // namespace
}  // namespace sluice::kv
