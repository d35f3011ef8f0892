#include "sim/cache_replay.h"

#include "sim/cache_plot.h"
#include "tests/places.h"
#include "trace/load_plan.h"
#include "trace/trace.h"

namespace sluice::sim {
namespace {

/// Requests of our own in Mooncake's format.
std::vector<SimWork> fixture() {
    const auto recorded =
        trace::read_trace(std::string(kSourceDir) + "/tests/sim/traces/conversation_trace.jsonl");
    return make_workload(
        plan_load(*recorded, {.requests = recorded->requests.size(), .rate = {}, .seed = 0}), {});
}

SimWork prompt(std::vector<BlockKey> chain, std::uint32_t tokens) {
    SimWork work;
    work.prompt_tokens = tokens;
    work.chain = std::make_shared<const std::vector<BlockKey>>(std::move(chain));
    return work;
}

TEST(CacheReplayTest, CountsTokensOfPrefixes) {
    const std::vector<SimWork> work{prompt({1, 2, 3}, 1'200), prompt({1, 2, 3}, 1'200),
                                    prompt({1, 2, 9}, 1'500), prompt({7}, 100)};
    const CacheResults results = replay_cache(work, {});
    EXPECT_EQ(results.prompt_tokens, 4'000U);
    EXPECT_EQ(results.blocks, 10U);
    EXPECT_EQ(results.usable_tokens, 1'200U + 1'024U);
    EXPECT_EQ(results.usable_blocks, 5U);
    EXPECT_DOUBLE_EQ(results.usable_block_share(), 0.5);
    EXPECT_DOUBLE_EQ(results.usable_share(), 2'224.0 / 4'000.0);
    EXPECT_EQ(results.evictions, 0U);
}

TEST(CacheReplayTest, NothingSentIsNothingFound) {
    EXPECT_EQ(replay_cache({}, {}).usable_share(), 0.0);
}

TEST(CacheReplayTest, AnEndlessCacheFindsTheSameWithAnyPolicyAndAnyNodes) {
    const auto work = fixture();
    const double limit = replay_cache(work, {}).usable_share();
    EXPECT_GT(limit, 0.1);
    for (const CachePolicy policy : {CachePolicy::kLru, CachePolicy::kS3Fifo}) {
        for (const std::uint32_t nodes : {1U, 5U})
            EXPECT_EQ(replay_cache(work, {.policy = policy, .nodes = nodes}).usable_share(), limit);
    }
}

TEST(CacheReplayTest, ALargerCacheFindsMoreAndNeverMoreThanAnEndlessOne) {
    const auto work = fixture();
    const double limit = replay_cache(work, {}).usable_share();
    double before = 0.0;
    for (const std::uint32_t blocks : {200U, 500U, 2'000U}) {
        const CacheResults results = replay_cache(work, {.blocks = blocks});
        EXPECT_GE(results.usable_share(), before);
        EXPECT_LE(results.usable_share(), limit);
        EXPECT_EQ(results.usable_tokens, results.present_tokens);  // One node: no holes.
        before = results.usable_share();
    }
    EXPECT_GT(before, 0.0);
}

TEST(CacheReplayTest, TheSameInputGivesTheSameResults) {
    const auto work = fixture();
    const SharedCacheOptions options{.blocks = 150, .nodes = 3};
    const CacheResults first = replay_cache(work, options);
    const CacheResults second = replay_cache(work, options);
    EXPECT_EQ(first.usable_tokens, second.usable_tokens);
    EXPECT_EQ(first.evictions, second.evictions);
    EXPECT_GE(first.present_tokens, first.usable_tokens);
}

TEST(CacheReplayTest, APlotHasACurveForEachPolicyAndTheLimit) {
    std::vector<CacheRun> runs;
    for (const CachePolicy policy : {CachePolicy::kWorth, CachePolicy::kLru})
        for (const std::uint32_t blocks : {0U, 100U, 1'000U})
            runs.push_back({.options = {.policy = policy, .blocks = blocks},
                            .results = {.prompt_tokens = 100, .usable_tokens = blocks / 20}});
    const std::string svg = cache_svg("a <trace>", runs);
    EXPECT_TRUE(svg.starts_with("<svg xmlns=")) << svg;
    EXPECT_NE(svg.find("a &lt;trace&gt;"), std::string::npos);
    EXPECT_NE(svg.find("worth, 1 node<"), std::string::npos);
    EXPECT_NE(svg.find("lru, 1 node<"), std::string::npos);
    EXPECT_NE(svg.find("without end"), std::string::npos);
    EXPECT_EQ(cache_svg("nothing", {}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace sluice::sim
