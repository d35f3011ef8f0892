#include "routing/registry.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/assert.h"

namespace sluice::routing {

void Tried::add(WorkerIndex worker) {
    if (!has(worker)) workers.push_back(worker);
}

bool Tried::has(WorkerIndex worker) const {
    return std::ranges::find(workers, worker) != workers.end();
}

Registry::Registry(WorkerIndex workers_max) : ledger_(workers_max), workers_max_(workers_max) {}

Result<WorkerIndex> Registry::add(WorkerOptions options) {
    if (!removed_.empty()) {
        const WorkerIndex index = removed_.back();
        removed_.pop_back();
        workers_[index] = {.options = std::move(options), .picks = workers_[index].picks};
        return index;
    }
    const auto index = static_cast<WorkerIndex>(workers_.size());
    if (index >= workers_max_)
        return std::unexpected(Error::out_of_range("worker", index, workers_max_));
    workers_.push_back({.options = std::move(options)});
    return index;
}

void Registry::remove(WorkerIndex worker) {
    SLUICE_ASSERT(ledger_.load(worker).requests == 0);
    workers_[worker].ready = false;
    workers_[worker].removed = true;
    removed_.push_back(worker);
}

void Registry::set_weight(WorkerIndex worker, double weight) {
    SLUICE_ASSERT(weight > 0.0 && weight <= 1.0);
    workers_[worker].weight = weight;
}

bool Registry::was_tried(WorkerIndex worker, const Tried& tried) const {
    if (tried.has(worker)) return true;
    const std::string& group = workers_[worker].options.failure_group;
    return !group.empty() && std::ranges::any_of(tried.workers, [&](WorkerIndex each) {
        return workers_[each].options.failure_group == group;
    });
}

bool Registry::better(WorkerIndex left, WorkerIndex right) const {
    const auto rank = [this](WorkerIndex index) {
        const Worker& worker = workers_[index];
        const Load& load = ledger_.load(index);
        // One more request than now, so that a low weight shows on an idle worker, too.
        return std::tuple((load.requests + 1.0) / worker.weight, load.prefill_tokens,
                          worker.picked_at, index);
    };
    return rank(left) < rank(right);
}

std::expected<Lease, NoPick> Registry::pick(PoolIndex pool, const Load& load, const Tried& tried) {
    std::optional<WorkerIndex> fresh;
    std::optional<WorkerIndex> used;
    NoPick why = NoPick::kNoneReady;
    for (WorkerIndex index = 0; index < workers_.size(); ++index) {
        const Worker& worker = workers_[index];
        if (worker.options.pool != pool || !worker.ready || worker.draining) continue;
        const bool avoided = was_tried(index, tried);
        const bool excluded = avoided && tried.rule == Tried::Rule::kExclude;
        const bool full =
            worker.options.capacity != 0 && ledger_.load(index).requests >= worker.options.capacity;
        if (excluded || full) {
            if (why != NoPick::kAllBusy) why = excluded ? NoPick::kAllTried : NoPick::kAllBusy;
            continue;
        }
        std::optional<WorkerIndex>& best = avoided ? used : fresh;
        if (!best || better(index, *best)) best = index;
    }
    const std::optional<WorkerIndex> best = fresh ? fresh : used;
    if (!best) return std::unexpected(why);
    auto lease = ledger_.acquire(*best, load);
    SLUICE_ASSERT(lease.has_value());
    workers_[*best].picked_at = ++serial_;
    ++workers_[*best].picks;
    return std::move(*lease);
}

std::uint32_t Registry::ready_in(PoolIndex pool) const {
    return static_cast<std::uint32_t>(std::ranges::count_if(workers_, [&](const Worker& worker) {
        return worker.options.pool == pool && worker.ready && !worker.draining;
    }));
}

std::uint64_t Registry::capacity_of(PoolIndex pool) const {
    std::uint64_t total = 0;
    for (const Worker& worker : workers_) {
        if (worker.options.pool != pool || !worker.ready) continue;
        if (worker.options.capacity == 0) return 0;
        total += worker.options.capacity;
    }
    return total;
}

std::uint64_t Registry::leases_in(PoolIndex pool) const {
    std::uint64_t total = 0;
    for (WorkerIndex worker = 0; worker < workers_.size(); ++worker)
        if (workers_[worker].options.pool == pool) total += ledger_.load(worker).requests;
    return total;
}

std::uint64_t Registry::dispatched(PoolIndex pool) const {
    std::uint64_t total = 0;
    for (const Worker& worker : workers_)
        if (worker.options.pool == pool) total += worker.picks;
    return total;
}

}  // namespace sluice::routing
