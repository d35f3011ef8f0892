// What a choice and the prefix index cost one core, with 1,000 workers, and what the index holds in
// memory when 10 million blocks have come and gone.
//
// Prompts are of 12,000 tokens (188 blocks of 64), the mean of Mooncake's conversation trace: a
// system prompt of 8 blocks that everybody holds, then a conversation that a few workers hold a part
// of.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "routing/prefix_index.h"
#include "routing/registry.h"

namespace sluice::routing {
namespace {

constexpr WorkerIndex kWorkers = 1'000;
constexpr std::size_t kBlocks = 188;
constexpr std::size_t kCommonBlocks = 8;
constexpr std::size_t kConversations = 4'096;
constexpr std::uint64_t kTokens = kBlocks * 64 + 13;
constexpr std::size_t kLive = 8'000;  ///< Leases held at any time.
constexpr Time kNow = Time{} + std::chrono::hours(1);

/// Chains with a common start.
std::vector<std::vector<BlockHash>> conversations(std::size_t count) {
    std::mt19937_64 random(1);
    std::vector<BlockHash> common(kCommonBlocks);
    for (BlockHash& each : common) each = random();
    std::vector<std::vector<BlockHash>> all(count, common);
    for (auto& chain : all)
        while (chain.size() < kBlocks) chain.push_back(random());
    return all;
}

/// 1,000 workers with what a while of traffic has left in their caches; and, if `shared`, in those of
/// cache nodes, and workers load from one another.
struct Cluster {
    explicit Cluster(bool shared = false) {
        std::mt19937_64 random(2);
        for (WorkerIndex worker = 0; worker < kWorkers; ++worker) {
            registry.set_ready(
                *registry.add({.lends = shared, .costs = {.attention_tokens = 50'000}}), true,
                kNow);
            registry.index().stored(worker, std::span(prompts[0]).first(kCommonBlocks));
            registry.report(worker, {.requests = 8}, kNow);
        }
        for (const auto& prompt : prompts) {
            const auto whole = static_cast<WorkerIndex>(random() % kWorkers);
            registry.index().stored(whole, prompt);
            const auto part = static_cast<WorkerIndex>(random() % kWorkers);
            registry.index().stored(part, std::span(prompt).first(random() % kBlocks));
        }
        if (shared) add_nodes();
    }

    /// Four that hold all but the last of each conversation, by extents.
    void add_nodes() {
        std::mt19937_64 random(5);
        std::vector<WorkerIndex> nodes(4);
        for (WorkerIndex& node : nodes) node = *registry.add_store();
        constexpr std::size_t kExtent = PrefixIndex::kExtent;
        for (const auto& prompt : prompts)
            for (std::size_t at = 0; at + kExtent <= kBlocks; at += kExtent)
                registry.index().stored(nodes[random() % nodes.size()],
                                        std::span(prompt).subspan(at, kExtent));
    }

    [[nodiscard]] Pick pick(const std::vector<BlockHash>& prompt) {
        return *registry.pick({.tokens = kTokens, .blocks = prompt}, {}, kNow);
    }
    [[nodiscard]] const std::vector<BlockHash>& next() { return prompts[at++ % prompts.size()]; }

    std::vector<std::vector<BlockHash>> prompts = conversations(kConversations);
    Registry registry{kWorkers + 4};
    std::size_t at = 0;
};

/// One for all: it takes a while to fill.
Cluster& the_cluster() {
    static Cluster cluster;
    return cluster;
}
Cluster& the_sharing_cluster() {
    static Cluster cluster(true);
    return cluster;
}

/// A choice, its lease, and the end of another.
void decide(benchmark::State& state, Cluster& cluster) {
    std::vector<Pick> live(kLive);
    std::size_t at = 0;
    for (auto unused : state) live[at++ % kLive] = cluster.pick(cluster.next());
    state.SetItemsProcessed(state.iterations());
    state.counters["index_blocks"] = static_cast<double>(cluster.registry.index().blocks());
}
void decisions(benchmark::State& state) { decide(state, the_cluster()); }
BENCHMARK(decisions);

/// The same where four cache nodes hold nearly all, too, and workers load from one another.
void decisions_with_nodes(benchmark::State& state) { decide(state, the_sharing_cluster()); }
BENCHMARK(decisions_with_nodes);

/// The same, and what is expected of the worker is put into the index: all that a dispatch costs.
void dispatches(benchmark::State& state) {
    Cluster& cluster = the_cluster();
    std::vector<Pick> live(kLive);
    std::size_t at = 0;
    for (auto unused : state) {
        const auto& prompt = cluster.next();
        Pick& pick = live[at++ % kLive];
        pick = cluster.pick(prompt);
        cluster.registry.expect(pick.lease.worker(), prompt, kNow);
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(dispatches);

/// A choice where nothing is known of the prompt.
void decisions_without_prefix(benchmark::State& state) {
    Cluster& cluster = the_cluster();
    std::vector<Pick> live(kLive);
    std::size_t at = 0;
    for (auto unused : state) live[at++ % kLive] = cluster.pick({});
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decisions_without_prefix);

void index_matches(benchmark::State& state) {
    Cluster& cluster = the_cluster();
    PrefixIndex::Matches found;
    for (auto unused : state) {
        cluster.registry.index().match(cluster.next(), found);
        benchmark::DoNotOptimize(found.blocks(0));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(index_matches);

/// Events as workers send them: a chain stored here, one removed there.
void index_events(benchmark::State& state) {
    Cluster& cluster = the_cluster();
    PrefixIndex& index = cluster.registry.index();
    std::mt19937_64 random(3);
    for (auto unused : state) {
        const auto& stored = cluster.next();
        index.stored(static_cast<WorkerIndex>(random() % kWorkers), stored);
        index.removed(static_cast<WorkerIndex>(random() % kWorkers), stored);
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * kBlocks));
}
BENCHMARK(index_events);

/// 10 million different blocks stored on 1,000 workers, each removed again a million blocks later,
/// but for a tenth whose removal gets lost.
void index_memory(benchmark::State& state) {
    constexpr std::uint64_t kAll = 10'000'000;
    constexpr std::uint64_t kLag = 1'000'000;
    for (auto unused : state) {
        PrefixIndex index(kWorkers);
        const auto hash_of = [](std::uint64_t i) { return i * 0x9E37'79B9'7F4A'7C15ULL; };
        std::size_t bytes_max = 0;
        for (std::uint64_t i = 0; i < kAll; ++i) {
            const BlockHash stored = hash_of(i);
            index.stored(static_cast<WorkerIndex>(i % kWorkers), {&stored, 1});
            if (i < kLag || i % 10 == 0) continue;
            const BlockHash removed = hash_of(i - kLag);
            index.removed(static_cast<WorkerIndex>((i - kLag) % kWorkers), {&removed, 1});
            if (i % 100'000 == 1) bytes_max = std::max(bytes_max, index.memory_bytes());
        }
        state.counters["mib_at_most"] = static_cast<double>(bytes_max) / (1024 * 1024);
        state.counters["blocks_left"] = static_cast<double>(index.blocks());
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * kAll - kLag));
}
BENCHMARK(index_memory)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice::routing

BENCHMARK_MAIN();
