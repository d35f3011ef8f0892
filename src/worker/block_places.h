#pragma once

// Which blocks a rank has at hand: in its engine's pool, or in the worker's memory, which all ranks
// share. Others hear of a block when it comes into the first of the two and when it has left both.
//
// Thread-safe: the engine's thread tells of the pool, any thread of the memory. Bounded by what both
// can hold.

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/block_observer.h"
#include "kvnode/kv_event_feed.h"
#include "kvnode/kv_event_log.h"

namespace sluice::worker {

class BlockPlaces final : public engine::BlockObserver {
public:
    /// `log` outlives this.
    explicit BlockPlaces(kvnode::KvEventLog& log) : log_(log) {}

    void stored(const kv::NamedBlock& block) override { add(block, Place::kPool); }
    void removed(const kv::BlockKey& key) override { remove(key, Place::kPool); }
    void stored_in_memory(const kv::NamedBlock& block) { add(block, Place::kMemory); }
    void removed_from_memory(const kv::BlockKey& key) { remove(key, Place::kMemory); }

    /// Everything, in the order in which it came: parents before what follows them.
    [[nodiscard]] kvnode::KvEventFeed::Snapshot snapshot() const;

private:
    enum class Place : std::uint8_t { kPool = 1, kMemory = 2 };
    struct Known {
        kv::NamedBlock block;
        std::uint8_t places = 0;   ///< Bits of Place.
        std::uint64_t number = 0;  ///< In the order of coming.
    };
    struct Hash {
        std::size_t operator()(const kv::BlockKey& key) const;
    };
    void add(const kv::NamedBlock& block, Place place);
    void remove(const kv::BlockKey& key, Place place);

    kvnode::KvEventLog& log_;
    mutable std::mutex mutex_;
    std::unordered_map<kv::BlockKey, Known, Hash> known_;
    std::uint64_t count_ = 0;
};

}  // namespace sluice::worker
