#pragma once

// The KV pool of a simulated engine: a fixed number of blocks, of which some are held by sequences and
// others keep a prefix for those that come later.
//
// A block that holds a prefix has a key. Held blocks stay; kept ones go when room is needed, the one
// that was used longest ago first, and of one chain its tail before its head. Blocks without a key
// (a prompt's rest, an answer) are counted only.
//
// Keys that came and went are noted for whoever follows the cache from outside: the events of
// `/kv_events`.

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace sluice::sim {

/// Names a block's text and everything before it.
using BlockKey = std::uint64_t;

class BlockCache {
public:
    explicit BlockCache(std::uint32_t blocks) : blocks_(blocks) {}

    /// How many blocks from the start of the chain are here.
    [[nodiscard]] std::uint32_t match(std::span<const BlockKey> chain) const;

    /// Holds the first `count` blocks of the chain, all of them here.
    void hold(std::span<const BlockKey> chain, std::uint32_t count);
    /// Gives the hold on `chain` back, one for each `hold` or `seal`. They are kept.
    void release(std::span<const BlockKey> chain);

    /// Takes `count` blocks without a key, evicting what it must; false, and nothing is changed, if
    /// there are too few.
    [[nodiscard]] bool allocate(std::uint32_t count);
    void give_back(std::uint32_t count);

    /// One block that was allocated is full now and gets a key. It is held. If the key is here
    /// already, that block is held instead and the new one given back.
    void seal(BlockKey key, BlockKey parent);

    /// A new pool; everything held must have been given back, or is forgotten with it.
    void clear();

    [[nodiscard]] std::uint32_t blocks() const { return blocks_; }
    /// Could be had by `allocate`.
    [[nodiscard]] std::uint32_t available() const {
        return blocks_ - unnamed_ - static_cast<std::uint32_t>(keyed_.size() - kept_.size());
    }
    [[nodiscard]] std::uint32_t held() const { return blocks_ - available(); }
    [[nodiscard]] std::uint64_t evictions() const { return evictions_; }

    struct Event {
        enum class Kind : std::uint8_t { kStored, kRemoved, kCleared } kind;
        BlockKey key = 0;
        BlockKey parent = 0;  ///< Of a stored one; 0 for the first of a chain.
    };
    [[nodiscard]] bool has_events() const { return !events_.empty(); }
    /// Since the last call, in order.
    [[nodiscard]] std::vector<Event> take_events();

private:
    struct Entry {
        std::uint32_t holds = 0;
        std::list<BlockKey>::iterator kept;  ///< Valid while `holds` is 0.
    };

    void evict_one();

    std::uint32_t blocks_;
    std::uint32_t unnamed_ = 0;
    std::unordered_map<BlockKey, Entry> keyed_;
    std::list<BlockKey> kept_;  ///< Front: evicted next.
    std::uint64_t evictions_ = 0;
    std::vector<Event> events_;
};

}  // namespace sluice::sim
