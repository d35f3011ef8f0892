#pragma once

// What a request asks of the registry, and what it gets.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "routing/cost_model.h"
#include "routing/ledger.h"
#include "routing/leg_phase.h"
#include "routing/time.h"

namespace sluice::routing {

/// Index of a pool; dense, given by whoever owns the pools.
using PoolIndex = std::uint32_t;

/// The first eight bytes of a block's key.
using BlockHash = std::uint64_t;

struct WorkerOptions {
    PoolIndex pool = 0;
    /// What it is for. It runs the other phases, too, once their own kind is gone.
    LegPhase phase = LegPhase::kFull;
    /// Requests at a time; 0 is as many as come.
    std::uint32_t capacity = 0;
    /// Others of its pool can load from its cache what it says it holds, and it from theirs.
    bool lends = false;
    /// What fails together has the same name; empty is a group of its own.
    std::string failure_group{};
    Costs costs{};
};

struct Demand {
    PoolIndex pool = 0;
    LegPhase phase = LegPhase::kFull;
    /// Whose keys and values are needed before the next token: the prompt, and what was answered.
    std::uint64_t tokens = 0;
    std::uint64_t image_tokens = 0;  ///< To be encoded.
    /// Of the full blocks of `tokens`, from the first on. May be empty.
    std::span<const BlockHash> blocks{};
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

/// Another worker that has the first `blocks` of the prompt.
struct Peer {
    WorkerIndex worker = 0;
    std::uint32_t blocks = 0;
};

/// A worker, counted for as long as the lease lives, and what was expected of it.
struct Pick {
    Lease lease;
    std::uint64_t matched_tokens = 0;  ///< Found in its cache, as far as is known.
    std::optional<Peer> peer{};        ///< That has more of it than the worker and all stores.
    double ttft = 0.0;                 ///< Seconds to the first token, with what waits before it.
    double work = 0.0;                 ///< What that is made of; see `prefill_work`.
};

enum class NoPick : std::uint8_t {
    kNoneReady,
    kAllBusy,   ///< Ready ones have no room.
    kAllTried,  ///< Each ready one is excluded.
};

}  // namespace sluice::routing
