#pragma once

// A place outside this process where blocks are kept: cache nodes, Redis, a shared directory. The
// worker knows all of them by this interface, and none of them is ever waited for longer than the
// caller says: what has not come by the deadline is a block that has to be computed.
//
// A store believes nothing that it reads. A value is handed on only after its checksums were right
// and it said that it is the block that was asked for; any other one is counted, removed from where
// it lay if that can be done, and missing.
//
// Everything runs on the thread of the event loop that the store was made with. A callback never
// runs from inside the call that it belongs to, and runs exactly once, unless the store (or, for a
// load, its handle) has been destroyed before. A store is not destroyed from inside its callbacks.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kv/block_key.h"
#include "kv/block_name.h"
#include "kv/shared_bytes.h"

namespace sluice::kvnode {

using Deadline = std::chrono::steady_clock::time_point;

/// The blocks of one sequence, from its first one on: where a block lives depends on the first key
/// of its extent.
struct Chain {
    std::string tenant;
    /// Of the request. Blocks of `kNone` are looked up in both other classes and never stored.
    kv::Retention retention = kv::Retention::kChat;
    std::vector<kv::BlockKey> keys;
};
using ChainPtr = std::shared_ptr<const Chain>;

/// The classes that a block may be kept under, the request's own one first.
[[nodiscard]] constexpr std::array<kv::Retention, 2> lookup_order(kv::Retention own) {
    if (own == kv::Retention::kChat) return {kv::Retention::kChat, kv::Retention::kAgent};
    return {kv::Retention::kAgent, kv::Retention::kChat};
}

/// A block of a chain, and the class that it is kept under.
struct FoundBlock {
    std::size_t index = 0;
    kv::Retention retention = kv::Retention::kChat;
    bool operator==(const FoundBlock&) const = default;
};

[[nodiscard]] inline kv::BlockName name_of(const Chain& chain, const FoundBlock& block) {
    return {.tenant = chain.tenant, .retention = block.retention, .key = chain.keys[block.index]};
}

enum class Stored : std::uint8_t {
    kStored,
    kWasThere,  ///< With the same payload.
    /// There is another payload under the same key: two builds that should compute the same bits
    /// don't (`numerics_violation`). The first one stays.
    kDiffers,
    kFailed,  ///< Also: given up at its deadline, or not even sent because too much waits already.
    kRefused,  ///< It was understood, and will not be kept: there is no room for it, or it has no place.
};

/// A load that goes on while its handle lives. Destroying it is always allowed, from inside its own
/// callbacks, too.
class Load {
public:
    Load() = default;
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    virtual ~Load() = default;
};

/// What a store, or one node of it, has done so far, and how fast it is.
struct StoreStats {
    std::string where;  ///< "redis://10.0.0.7:7001", "dir:///shared/kv"; without a password.
    bool up = false;    ///< A request has a chance; otherwise it is a miss at once.
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;  ///< Of loads. What a look-up doesn't find is counted by nobody.
    std::uint64_t stored = 0;
    std::uint64_t bytes_read = 0;  ///< Of values, as those that follow.
    std::uint64_t bytes_written = 0;
    std::uint64_t pulled = 0;    ///< Found at an earlier owner, and stored here.
    std::uint64_t corrupt = 0;   ///< Values whose checksums were wrong, or that were another block.
    std::uint64_t differs = 0;   ///< `Stored::kDiffers`.
    std::uint64_t timeouts = 0;  ///< Requests without an answer by their deadline.
    std::uint64_t errors = 0;    ///< Refused, cut off, or answered with an error.
    std::uint64_t refused = 0;   ///< Not even asked: down, or too much waits.
    /// Of look-ups, averaged over the last ones; zero before the first.
    std::chrono::microseconds round_trip{0};
    /// Of loads, from asking to the last byte, averaged over the last ones; zero before the first.
    double bytes_per_second = 0;

    void add_round_trip(std::chrono::nanoseconds time);
    void add_load(std::size_t bytes, std::chrono::nanoseconds time);
};

class BlockStore {
public:
    /// One entry for each key of the chain: the class under which the store has it, if any.
    using OnFound = std::function<void(std::vector<std::optional<kv::Retention>> found)>;
    using OnValue = std::function<void(std::size_t index, kv::SharedBytes value)>;
    using OnStored = std::function<void(Stored)>;

    BlockStore() = default;
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;
    virtual ~BlockStore() = default;

    /// Which blocks are there, the chain's own class before the other one. What is not known by
    /// `deadline` counts as missing. A promise it is not: a block may be gone when it is loaded.
    virtual void find(ChainPtr chain, Deadline deadline, OnFound on_found) = 0;

    /// Reads the blocks, the first in `blocks` first; values arrive in any order, checked. `on_done`
    /// follows the last one that comes. `blocks` are distinct and below the number of keys.
    [[nodiscard]] virtual std::unique_ptr<Load> load(ChainPtr chain, std::vector<FoundBlock> blocks,
                                                     Deadline deadline, OnValue on_value,
                                                     std::function<void()> on_done) = 0;

    /// Keeps `value`, the encoded block named by the chain's key number `index`, under the chain's
    /// class for as long as the class is retained.
    virtual void store(ChainPtr chain, std::size_t index, kv::SharedBytes value,
                       OnStored on_stored) = 0;

    /// The blocks were used: their time begins anew. From the last to the first, so that a chain
    /// never loses its beginning before its end. Nothing is told.
    virtual void touch(ChainPtr chain, std::vector<FoundBlock> blocks) = 0;

    /// One entry for each node; one for a store that has none.
    [[nodiscard]] virtual std::vector<StoreStats> stats() const = 0;
};

}  // namespace sluice::kvnode
