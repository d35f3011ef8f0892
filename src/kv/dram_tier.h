#pragma once

// The tier in memory, of a worker and of a node: values by name, within a number of bytes that covers
// everything they take, and gone in the end: by eviction, by the end of their life, or by request.
//
// A name "kv:{tenant}:{class}:{key}" is a block. Its value must be that block's (kv/block_value.h), it
// lives as long after its last use as its class says, it counts against its tenant's bound, and it
// outlives the blocks that follow it in its chain; what goes first is kv/worth_order.h's to say. Blocks
// never change: a second value with the same payload is no news, and one with another payload is a
// numerics violation; the first stays. All other names are plain: the last value counts, and lives as
// long as its writer said.
//
// Thread-safe: one lock, held for the index alone. Values are shared, so a read outlives whatever
// happens to its name, and what an eviction frees is freed after the lock. Time is an argument.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "kv/chain_index.h"
#include "kv/retention.h"
#include "kv/shared_bytes.h"
#include "kv/tier_stats.h"

namespace sluice::kv {

class DramTier {
public:
    struct Options {
        std::size_t bytes = 0;
        std::size_t tenant_bytes = 0;  ///< Of each tenant's blocks; 0: no bound but the tier's.
        RetentionTimes retention;
    };

    /// One entry, as others see it; valid during the call it is given to.
    struct Item {
        std::string_view name;
        SharedBytes value;
        WallTime expires = kForever;
        bool pinned = false;
        /// Of a block.
        struct Block {
            std::string_view tenant;
            Retention retention = Retention::kNone;
            BlockKey key{};
            /// Nothing if the block before isn't known by name; the root of a sequence counts as one.
            std::optional<BlockKey> parent;
        };
        std::optional<Block> block;
    };

    enum class Stored : std::uint8_t {
        kStored,
        kWasThere,  ///< The same block, whose life goes on from now; or `only_if_absent`.
        kDiffers,   ///< A block of that name with another payload.
        kRefused,  ///< Too large, all is pinned, of a class that keeps nothing, or not what it says.
    };

    struct PutOptions {
        std::optional<WallTime> expires;  ///< Else by class, or for ever.
        bool only_if_absent = false;      ///< Blocks always are.
    };

    /// Both are called in the order of events and under the lock: they may not call the tier.
    struct Observer {
        std::function<void(const Item&)> stored;
        std::function<void(const Item&, Removal)> removed;
    };

    explicit DramTier(const Options& options, Observer observer = {});
    ~DramTier();
    DramTier(const DramTier&) = delete;
    DramTier& operator=(const DramTier&) = delete;

    /// A use. Empty if it isn't here.
    [[nodiscard]] SharedBytes get(std::string_view name, WallTime now);
    /// No use.
    [[nodiscard]] bool contains(std::string_view name, WallTime now) const;
    [[nodiscard]] SharedBytes peek(std::string_view name, WallTime now) const;
    /// A use without a read; false if it isn't here.
    bool touch(std::string_view name, WallTime now);

    /// The owner of `value` should own little else: its bytes are what is counted.
    Stored put(std::string_view name, SharedBytes value, const PutOptions& options, WallTime now);
    Stored put(std::string_view name, SharedBytes value, WallTime now) {
        return put(name, std::move(value), {}, now);
    }
    /// False if it wasn't here. `why` is kErased or kCorrupt.
    bool erase(std::string_view name, Removal why = Removal::kErased);
    /// All blocks of a tenant, of a class, of both, or everything, plain names too. How many it was.
    std::size_t erase_if(std::optional<std::string_view> tenant,
                         std::optional<Retention> retention);

    /// Sets the end of its life; kForever: none. False if it isn't here.
    bool expire(std::string_view name, WallTime when, WallTime now);
    /// Until the end of its life; milliseconds::max() if it has none. Nothing if it isn't here.
    [[nodiscard]] std::optional<std::chrono::milliseconds> time_left(std::string_view name,
                                                                     WallTime now) const;

    /// A lease: until then it is neither evicted nor expires. At most kKvPinSeconds from now, at most
    /// kKvPins, and at most half of the bytes. False if it isn't here or would be too much. A second
    /// one moves the end; one that is over already ends the lease.
    bool pin(std::string_view name, WallTime until, WallTime now);

    /// What these tenants may take, from now on; all others as Options::tenant_bytes says. What is too
    /// much goes at once, unless it is pinned.
    using TenantBounds = std::map<std::string, std::size_t, std::less<>>;
    void bound_tenants(TenantBounds bounds);

    /// Drops what is over among the next `count` names or so, and ends leases; to be called now and
    /// then. What is over is never found, but takes room until it is evicted or swept.
    std::size_t sweep(std::size_t count, WallTime now);

    /// As NameTable::scan: starts at 0, goes on with what it returned until that is 0.
    [[nodiscard]] std::uint64_t scan(std::uint64_t cursor, std::size_t count, WallTime now,
                                     FunctionRef<void(const Item&)> visit) const;
    /// All of them, some at a time: others use the tier meanwhile.
    void for_each(WallTime now, FunctionRef<void(const Item&)> visit) const;

    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::uint64_t entries() const;
    [[nodiscard]] DramStats stats() const;
    [[nodiscard]] const Options& options() const { return options_; }

private:
    /// Values on their way out: they end after the lock does.
    using Leaving = std::vector<SharedBytes>;

    [[nodiscard]] TierEntry* live(std::string_view name, WallTime now) const;
    /// As `live`, but what is over goes.
    [[nodiscard]] TierEntry* find(const ChainIndex::Name& name, WallTime now, Leaving& leaving);
    void use(TierEntry& entry, WallTime now);
    void extend(TierEntry& entry, WallTime expires);
    void set_end(TierEntry& entry, WallTime end);
    Stored put_block(const ChainIndex::Name& name, const BlockName& block, SharedBytes value,
                     const PutOptions& options, WallTime now, Leaving& leaving);
    Stored put_plain(const ChainIndex::Name& name, SharedBytes value, const PutOptions& options,
                     WallTime now, Leaving& leaving);
    [[nodiscard]] bool make_room(std::size_t bytes, Leaving& leaving);
    /// 0: none.
    [[nodiscard]] std::size_t bound_of(std::string_view tenant) const;
    [[nodiscard]] bool make_tenant_room(std::string_view tenant, std::size_t bytes,
                                        Leaving& leaving);
    void remove(TierEntry& entry, Removal why, Leaving& leaving);
    void end_leases(WallTime now);
    void unpin(TierEntry& entry);
    void report_stored(const TierEntry& entry);
    Stored count(Stored stored);
    [[nodiscard]] static Item item_of(const TierEntry& entry);
    [[nodiscard]] TierUse& use_of(const TierEntry& entry);

    Options options_;
    Observer observer_;
    mutable std::mutex mutex_;
    TenantBounds bounds_;
    ChainIndex index_;
    std::set<std::pair<WallTime, TierEntry*>> pins_;  ///< The first to end first.
    std::size_t pinned_bytes_ = 0;
    std::uint64_t sweep_cursor_ = 0;
    DramStats stats_;  ///< What isn't counted elsewhere.
};

}  // namespace sluice::kv
