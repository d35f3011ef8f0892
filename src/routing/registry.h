#pragma once

// The workers of all pools: which of them can take a request, and who takes the next one. Loads are
// the ledger's; what is here is state that events set, and the choice itself.
//
// A worker is ready once somebody said so, and takes requests if besides it is not draining, its
// breaker lets it, and it has room. Of those that are for the request's phase the policy's best is
// picked; workers for other phases stand in where there is none left. Workers and failure groups that
// a request has tried are avoided.
//
// In a pool of more than 128 workers of a kind a choice looks at 32 of them, drawn at random, and at
// the 8 that hold the most of the prompt; it is as good as the best of all for all that matters, and
// takes no longer with thousands.
//
// Not thread-safe: belongs to one owner. Outlives every lease it grants.

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "routing/demand.h"
#include "routing/health.h"
#include "routing/ledger.h"
#include "routing/length_tiers.h"
#include "routing/policy.h"
#include "routing/prefix_index.h"
#include "routing/reported_load.h"

namespace sluice::routing {

struct RegistryOptions {
    std::uint64_t seed = 1;  ///< Of what is drawn at random.
    /// Scores are made worse by up to this share, at random, so that gateways that share workers
    /// and know the same do not all choose the same one.
    double jitter = 0.0;
    std::size_t index_blocks = limits::kPrefixIndexBlocks;
    /// So many blocks of a chain lie with one cache node in a row.
    std::uint32_t extent_blocks = PrefixIndex::kExtent;
};

class Registry {
public:
    /// `workers_max` bounds `add`.
    explicit Registry(WorkerIndex workers_max, const RegistryOptions& options = {});

    // ---- Workers

    /// A new worker that is not ready. Indices of removed ones are given again once nothing is
    /// leased on them. Error `kOutOfRange` beyond `workers_max`.
    [[nodiscard]] Result<WorkerIndex> add(WorkerOptions options);
    /// It takes no more requests, and keeps those it has; or takes them again.
    void drain(WorkerIndex worker, bool on);
    /// It is gone, and all that was known of it. Leases on it may end later.
    void remove(WorkerIndex worker);

    /// A place that holds blocks for every worker and takes no requests: a cache node. What it holds is
    /// told to the index under this number. Errors as of `add`; it goes by `remove`.
    [[nodiscard]] Result<WorkerIndex> add_store();

    void set_ready(WorkerIndex worker, bool ready, Time now);
    [[nodiscard]] bool ready(WorkerIndex worker) const { return workers_[worker].ready; }
    [[nodiscard]] bool draining(WorkerIndex worker) const { return workers_[worker].draining; }
    /// Whether it would be given a request: ready, not draining, breaker not open.
    [[nodiscard]] bool takes_requests(WorkerIndex worker, Time now) const {
        const Worker& asked = workers_[worker];
        return asked.ready && !asked.draining && asked.health.takes_requests(now);
    }

    void set_failure_group(WorkerIndex worker, const std::string& group);
    /// All that fail with it, itself among them.
    [[nodiscard]] std::vector<WorkerIndex> failure_group(WorkerIndex worker) const;
    void set_costs(WorkerIndex worker, const Costs& costs);
    /// See WorkerOptions::lends.
    void set_lends(WorkerIndex worker, bool lends) { workers_[worker].options.lends = lends; }
    /// What it says it is; true if the pool's other workers are that, too. One that came back as
    /// something else must not be made ready: its pool stays what it was while anybody of it is
    /// ready, or was within the last minute.
    [[nodiscard]] bool set_identity(WorkerIndex worker, const std::string& identity, Time now) {
        return set_identity({&worker, 1}, identity, now);
    }
    /// The same of several that are one process; at least one, all of one pool.
    [[nodiscard]] bool set_identity(std::span<const WorkerIndex> workers,
                                    const std::string& identity, Time now);

    void set_policy(PoolIndex pool, Policy policy);
    /// Whether long prompts are kept off some workers; on at first.
    void set_tiers(PoolIndex pool, bool on);

    // ---- What is learned of them

    void report(WorkerIndex worker, const Report& report, Time now);
    /// How a leg went that began then.
    void on_result(WorkerIndex worker, LegResult result, Time began, Time now);
    /// Another process is there now: it holds nothing, nothing is held against it, and it is not
    /// ready before somebody says so.
    void on_restart(WorkerIndex worker, Time now);
    /// A leg with `Pick::work` before its first token got it after so many seconds.
    void on_first_token(WorkerIndex worker, double work, double seconds);
    [[nodiscard]] const Health& health(WorkerIndex worker) const { return workers_[worker].health; }
    [[nodiscard]] double seconds_per_work(WorkerIndex worker) const;

    /// Events of workers' caches go here.
    [[nodiscard]] PrefixIndex& index() { return index_; }
    [[nodiscard]] const PrefixIndex& index() const { return index_; }
    /// Whether events tell what the worker holds; if not, guesses are all there is, and stay.
    void set_events(WorkerIndex worker, bool on) { workers_[worker].events = on; }
    [[nodiscard]] bool events(WorkerIndex worker) const { return workers_[worker].events; }
    /// The prompt with these blocks was sent to it.
    void expect(WorkerIndex worker, std::span<const BlockHash> blocks, Time now);

    // ---- The choice

    [[nodiscard]] std::expected<Pick, NoPick> pick(const Demand& demand, const Tried& tried,
                                                   Time now);

    // ---- Numbers

    /// Workers that take requests, whatever their phase.
    [[nodiscard]] std::uint32_t ready_in(PoolIndex pool, Time now) const;
    /// Whether the pool has a worker that is for this phase and takes requests.
    [[nodiscard]] bool serves(PoolIndex pool, LegPhase phase, Time now) const;
    /// Requests the pool's ready workers can hold; 0 if one of them holds as many as come.
    [[nodiscard]] std::uint64_t capacity_of(PoolIndex pool) const;
    [[nodiscard]] const Load& load(WorkerIndex worker) const { return ledger_.load(worker); }
    /// Ours and others', as a choice sees it.
    [[nodiscard]] Load total_load(WorkerIndex worker, Time now) const;
    [[nodiscard]] std::uint64_t leases() const { return ledger_.leases(); }
    /// Requests that the pool's workers hold leases for now.
    [[nodiscard]] std::uint64_t leases_in(PoolIndex pool) const;
    /// Leases ever granted on workers of `pool`.
    [[nodiscard]] std::uint64_t dispatched(PoolIndex pool) const;

private:
    /// How much longer prompts took than their costs say. Sums that fade, so that a prompt counts
    /// for as much as it has to compute: the short ones measure the way there.
    struct Slowness {
        double seconds = 0.0;
        double expected = 0.0;
        double work = 0.0;

        void learn(double took, double should_take, double of_work);
        [[nodiscard]] double ratio() const { return seconds / expected; }
    };
    struct Worker {
        // What a choice looks at.
        std::uint64_t group = 0;  ///< Hash of the failure group's name; 0 is its own.
        bool ready = false;
        bool draining = false;
        bool removed = false;
        bool events = false;
        std::uint32_t place = 0;  ///< Among its pool's members of its phase.
        Slowness slowness;
        double turn = 0.0;            ///< Of equals the one with the lowest is picked.
        std::uint64_t picked_at = 0;  ///< Serial of the last pick; 0 is never.
        Health health;
        ReportedLoad reported;
        WorkerOptions options;
        std::uint64_t picks = 0;
        std::uint64_t identity = 0;  ///< Hash of what it says it is; 0 is unknown.
        Time ready_until{};          ///< Of one that is not: when it was last.
    };
    struct PoolState {
        std::array<std::vector<WorkerIndex>, kLegPhases> members;
        Policy policy = Policy::kDefault;
        bool tiers = true;
        LengthTiers lengths;
        Slowness slowness{.seconds = 1.0, .expected = 1.0};
        std::uint64_t identity = 0;
        std::uint64_t picks_of_removed = 0;
        double turn = 0.0;        ///< Of the worker that was picked last.
        std::uint32_t ready = 0;  ///< Workers.
        Time began{};             ///< Since then some worker has been ready.
        double usual_requests = 0.0;
        double usual_kv_tokens = 0.0;
        Load usual;  ///< Foreign load of a worker that reports, on the whole.
    };
    struct Search;

    [[nodiscard]] Result<WorkerIndex> new_index();
    [[nodiscard]] PoolState& pool(PoolIndex index);
    [[nodiscard]] const PoolState* find_pool(PoolIndex index) const;
    void search(Search& search, std::span<const WorkerIndex> members);
    void consider(Search& search, WorkerIndex index);
    [[nodiscard]] bool was_tried(WorkerIndex worker, const Tried& tried) const;
    [[nodiscard]] std::uint64_t draw();
    void find_peer(Search& search);
    [[nodiscard]] Pick grant(Search& search);

    Ledger ledger_;
    WorkerIndex workers_max_;
    RegistryOptions options_;
    std::uint64_t drawn_;
    std::uint64_t serial_ = 0;
    std::vector<Worker> workers_;
    std::vector<WorkerIndex> removed_;
    std::vector<WorkerIndex> stores_;
    std::vector<PoolState> pools_;
    PrefixIndex index_;
    // Of the choice being made.
    PrefixIndex::Matches matches_;
    std::vector<WorkerIndex> holders_;
};

}  // namespace sluice::routing
