#pragma once

// The cache behind the simulated engines: nodes that share its blocks by extents, as kv::Placement
// says. A trace's blocks have 512 tokens, so that an extent of 16 blocks of 64 is two of them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/placement.h"
#include "sim/cache_node.h"
#include "trace/trace.h"

namespace sluice::sim {

struct SharedCacheOptions {
    CachePolicy policy = CachePolicy::kWorth;
    std::uint32_t blocks = 0;  ///< Of all nodes together; 0: without end.
    std::uint32_t nodes = 1;
    /// For kAttention: the position at which a token's attention costs as much as the rest of it.
    double attention_tokens = 50'000.0;
};

class SharedCache {
public:
    /// Of a trace's blocks, as many as lie on one node in a row.
    static constexpr std::uint32_t kExtent = kv::kExtentBlocks * 64 / trace::kTraceBlockTokens;

    explicit SharedCache(const SharedCacheOptions& options);

    /// How many blocks from the start of the chain are here.
    [[nodiscard]] std::uint32_t match(std::span<const BlockKey> chain) const;
    /// How many of them are here, wherever they stand.
    [[nodiscard]] std::uint32_t count(std::span<const BlockKey> chain) const;
    [[nodiscard]] bool holds(std::span<const BlockKey> chain, std::size_t block) const;
    /// A hit: uses all of `chain` that is here, from its end to its start.
    void use(std::span<const BlockKey> chain);
    /// Stores what isn't here of the blocks from `from` on, towards the end.
    void store(std::span<const BlockKey> chain, std::size_t from = 0);

    /// Hears of all that comes and goes.
    void watch(const CacheNode::Watch& watch);

    [[nodiscard]] std::uint64_t blocks() const;
    [[nodiscard]] std::uint64_t evictions() const;
    /// The fullest node's blocks over the mean; 1 if there are none.
    [[nodiscard]] double imbalance() const;

private:
    [[nodiscard]] std::size_t node_of(std::span<const BlockKey> chain, std::size_t block) const;

    SharedCacheOptions options_;
    kv::Placement placement_;
    std::vector<std::unique_ptr<CacheNode>> nodes_;
};

}  // namespace sluice::sim
