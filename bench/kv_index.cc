// What the index of the tier in memory costs one core: names in, names out, whatever the values weigh.
//
// The goal is a million operations a second: a node that answers 64 KiB blocks at 10 GB/s makes 150,000.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "kv/block_name.h"
#include "kv/block_value.h"
#include "kv/dram_tier.h"

namespace sluice::kv {
namespace {

constexpr WallTime kNow{std::chrono::hours(1'000'000)};
constexpr std::size_t kBlocks = 100'000;  ///< 14 GB of the built-in model's.
constexpr std::size_t kChain = 188;       ///< Of a prompt of 12,000 tokens.

struct Block {
    std::string name;
    SharedBytes value;
};

/// Chains of blocks whose payload is empty: values cost what their owners do, names what names do.
const std::vector<Block>& the_blocks() {
    static const std::vector<Block> blocks = [] {
        std::vector<Block> made;
        BlockKey parent{};
        for (std::size_t i = 0; i < 2 * kBlocks; ++i) {
            if (i % kChain == 0) parent = sha256("tenant");
            const BlockKey key = sha256(std::to_string(i));
            const BlockHeader header{
                .key = key, .parent = parent, .component = "mla", .tokens = 64, .producer = {}};
            made.push_back(
                {.name = to_wire({.tenant = "tenant", .retention = Retention::kAgent, .key = key}),
                 .value = SharedBytes::own(encode_block(header, 0, [](std::span<std::byte>) {}))});
            parent = key;
        }
        return made;
    }();
    return blocks;
}

/// Holds about half of the blocks.
DramTier::Options half() {
    const Block& block = the_blocks().front();
    return {.bytes = kBlocks * entry_cost(block.name.size(), block.value.bytes.size()) + 4'000'000,
            .tenant_bytes = 0,
            .retention = {}};
}

void fill(DramTier& tier) {
    for (std::size_t i = 0; i < kBlocks; ++i)
        tier.put(the_blocks()[i].name, the_blocks()[i].value, kNow);
}

void gets(benchmark::State& state) {
    DramTier tier(half());
    fill(tier);
    std::mt19937_64 random(1);
    for (auto unused : state)
        benchmark::DoNotOptimize(tier.get(the_blocks()[random() % kBlocks].name, kNow));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(gets);

/// As a request asks: a chain from its start on.
void gets_of_chains(benchmark::State& state) {
    DramTier tier(half());
    fill(tier);
    std::mt19937_64 random(1);
    std::size_t at = 0;
    for (auto unused : state) {
        if (at % kChain == 0) at = random() % (kBlocks / kChain) * kChain;
        benchmark::DoNotOptimize(tier.get(the_blocks()[at++].name, kNow));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(gets_of_chains);

void misses(benchmark::State& state) {
    DramTier tier(half());
    fill(tier);
    std::mt19937_64 random(1);
    for (auto unused : state)
        benchmark::DoNotOptimize(tier.get(the_blocks()[kBlocks + random() % kBlocks].name, kNow));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(misses);

/// Each one drives another out.
void puts_and_evictions(benchmark::State& state) {
    DramTier tier(half());
    fill(tier);
    std::size_t at = kBlocks;
    for (auto unused : state) {
        const Block& block = the_blocks()[at++ % the_blocks().size()];
        benchmark::DoNotOptimize(tier.put(block.name, block.value, kNow));
    }
    state.SetItemsProcessed(state.iterations());
    state.counters["entries"] = static_cast<double>(tier.entries());
    state.counters["bytes_each"] =
        static_cast<double>(tier.bytes()) / static_cast<double>(tier.entries());
}
BENCHMARK(puts_and_evictions);

/// Plain names, as any Redis client's.
void plain_puts(benchmark::State& state) {
    DramTier tier({.bytes = 64 * 1024 * 1024});
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kBlocks; ++i) names.push_back("key:" + std::to_string(i));
    const SharedBytes value = SharedBytes::own(std::string(64, 'x'));
    std::mt19937_64 random(1);
    for (auto unused : state)
        benchmark::DoNotOptimize(tier.put(names[random() % kBlocks], value, kNow));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(plain_puts);

/// Nine reads for each write, whose block is new.
void mixed(benchmark::State& state) {
    DramTier tier(half());
    fill(tier);
    std::mt19937_64 random(1);
    std::size_t at = kBlocks;
    for (auto unused : state) {
        if (random() % 10 == 0) {
            const Block& block = the_blocks()[at++ % the_blocks().size()];
            benchmark::DoNotOptimize(tier.put(block.name, block.value, kNow));
        } else {
            benchmark::DoNotOptimize(
                tier.get(the_blocks()[(at + random() % kBlocks) % the_blocks().size()].name, kNow));
        }
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(mixed);

}  // namespace
}  // namespace sluice::kv

BENCHMARK_MAIN();
