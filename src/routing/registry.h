#pragma once

// The workers of all pools: which of them can take a request, and who takes the next one. Loads are
// the ledger's; what is here is state that events set (ready, weight) and the choice itself.
//
// Of the ready workers of a pool with room the one with the least load in proportion to its weight
// is picked; of equals, the one that was picked longest ago. Workers and failure groups that a
// request has tried are avoided.
//
// Not thread-safe: belongs to one owner. Outlives every lease it grants.

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "routing/ledger.h"

namespace sluice::routing {

/// Index of a pool; dense, given by whoever owns the pools.
using PoolIndex = std::uint32_t;

struct WorkerOptions {
    PoolIndex pool = 0;
    /// Requests at a time; 0 is as many as come.
    std::uint32_t capacity = 0;
    /// What fails together has the same name; empty is a group of its own.
    std::string failure_group;
};

/// What a request has tried already.
struct Tried {
    enum class Rule : std::uint8_t {
        kAvoid,   ///< Picked again only if nothing else is there.
        kExclude  ///< Never picked again.
    };
    Rule rule = Rule::kAvoid;
    std::vector<WorkerIndex> workers;

    void add(WorkerIndex worker);
    [[nodiscard]] bool has(WorkerIndex worker) const;
};

enum class NoPick : std::uint8_t {
    kNoneReady,
    kAllBusy,   ///< Ready ones have no room.
    kAllTried,  ///< Each ready one is excluded.
};

class Registry {
public:
    /// `workers_max` bounds `add`.
    explicit Registry(WorkerIndex workers_max);

    /// A new worker that is not ready. Error `kOutOfRange` beyond `workers_max`.
    [[nodiscard]] Result<WorkerIndex> add(WorkerOptions options);

    /// It takes no more requests, and keeps those it has; or takes them again.
    void drain(WorkerIndex worker, bool on) { workers_[worker].draining = on; }
    [[nodiscard]] bool draining(WorkerIndex worker) const { return workers_[worker].draining; }
    /// It is gone; nothing may be leased on it. Its index is given again.
    void remove(WorkerIndex worker);

    void set_ready(WorkerIndex worker, bool ready) { workers_[worker].ready = ready; }
    [[nodiscard]] bool ready(WorkerIndex worker) const { return workers_[worker].ready; }

    /// Its share beside its like, in (0, 1]; 1 at first.
    void set_weight(WorkerIndex worker, double weight);
    [[nodiscard]] double weight(WorkerIndex worker) const { return workers_[worker].weight; }
    void set_failure_group(WorkerIndex worker, std::string group) {
        workers_[worker].options.failure_group = std::move(group);
    }

    [[nodiscard]] std::expected<Lease, NoPick> pick(PoolIndex pool, const Load& load,
                                                    const Tried& tried = {});

    [[nodiscard]] std::uint32_t ready_in(PoolIndex pool) const;
    /// Requests the pool's ready workers can hold; 0 if one of them holds as many as come.
    [[nodiscard]] std::uint64_t capacity_of(PoolIndex pool) const;
    [[nodiscard]] const Load& load(WorkerIndex worker) const { return ledger_.load(worker); }
    [[nodiscard]] std::uint64_t leases() const { return ledger_.leases(); }
    /// Requests that the pool's workers hold leases for now.
    [[nodiscard]] std::uint64_t leases_in(PoolIndex pool) const;
    /// Leases ever granted on workers of `pool`.
    [[nodiscard]] std::uint64_t dispatched(PoolIndex pool) const;

private:
    struct Worker {
        WorkerOptions options;
        bool ready = false;
        bool draining = false;
        bool removed = false;
        double weight = 1.0;
        std::uint64_t picked_at = 0;  ///< Serial of the last pick; 0 is never.
        std::uint64_t picks = 0;
    };

    [[nodiscard]] bool was_tried(WorkerIndex worker, const Tried& tried) const;
    [[nodiscard]] bool better(WorkerIndex left, WorkerIndex right) const;

    Ledger ledger_;
    WorkerIndex workers_max_;
    std::uint64_t serial_ = 0;
    std::vector<Worker> workers_;
    std::vector<WorkerIndex> removed_;
};

}  // namespace sluice::routing
