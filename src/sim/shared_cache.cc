#include "sim/shared_cache.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/assert.h"
#include "trace/trace.h"

namespace sluice::sim {
namespace {

/// As a name of kv; the simulator's keys are random enough by themselves.
kv::BlockKey to_digest(BlockKey key) {
    kv::BlockKey digest{};
    std::memcpy(digest.data(), &key, sizeof key);
    return digest;
}

}  // namespace

SharedCache::SharedCache(const SharedCacheOptions& options) : options_(options) {
    SLUICE_ASSERT(options.nodes > 0);
    std::vector<std::string> names;
    for (std::uint32_t node = 0; node < options.nodes; ++node) {
        // What doesn't divide goes to the first ones.
        const std::uint32_t extra = node < options.blocks % options.nodes ? 1 : 0;
        const std::uint32_t blocks = options.blocks == 0 ? std::numeric_limits<std::uint32_t>::max()
                                                         : options.blocks / options.nodes + extra;
        nodes_.push_back(make_cache_node(options.policy, blocks));
        names.push_back("node-" + std::to_string(node));
    }
    const bool fresh = placement_.set_members(1, names);
    SLUICE_ASSERT(fresh);
}

std::size_t SharedCache::node_of(std::span<const BlockKey> chain, std::size_t block) const {
    if (nodes_.size() == 1) return 0;
    return placement_.owners(to_digest(chain[block - block % kExtent])).front();
}

bool SharedCache::holds(std::span<const BlockKey> chain, std::size_t block) const {
    return nodes_[node_of(chain, block)]->contains(chain[block]);
}

std::uint32_t SharedCache::match(std::span<const BlockKey> chain) const {
    std::uint32_t found = 0;
    while (found < chain.size() && holds(chain, found)) ++found;
    return found;
}

std::uint32_t SharedCache::count(std::span<const BlockKey> chain) const {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < chain.size(); ++i)
        if (holds(chain, i)) ++found;
    return found;
}

void SharedCache::use(std::span<const BlockKey> chain) {
    for (std::size_t i = chain.size(); i-- > 0;) {
        CacheNode& node = *nodes_[node_of(chain, i)];
        if (node.contains(chain[i])) node.use(chain[i]);
    }
}

void SharedCache::store(std::span<const BlockKey> chain, std::size_t from) {
    const bool grows = options_.policy == CachePolicy::kAttention;
    for (std::size_t i = from; i < chain.size(); ++i) {
        const double position = static_cast<double>(i) * trace::kTraceBlockTokens;
        const double cost = grows ? 1.0 + position / options_.attention_tokens : 1.0;
        nodes_[node_of(chain, i)]->store(chain[i], i == 0 ? 0 : chain[i - 1],
                                         static_cast<float>(cost));
    }
}

void SharedCache::watch(const CacheNode::Watch& watch) {
    for (const auto& node : nodes_) node->watch(watch);
}

std::uint64_t SharedCache::blocks() const {
    std::uint64_t blocks = 0;
    for (const auto& node : nodes_) blocks += node->blocks();
    return blocks;
}

std::uint64_t SharedCache::evictions() const {
    std::uint64_t evictions = 0;
    for (const auto& node : nodes_) evictions += node->evictions();
    return evictions;
}

double SharedCache::imbalance() const {
    std::uint64_t total = 0;
    std::uint64_t most = 0;
    for (const auto& node : nodes_) {
        total += node->blocks();
        most = std::max<std::uint64_t>(most, node->blocks());
    }
    if (total == 0) return 1.0;
    return static_cast<double>(most * nodes_.size()) / static_cast<double>(total);
}

}  // namespace sluice::sim
