#include "routing/registry.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "base/assert.h"

namespace sluice::routing {
namespace {

/// A pool is what its first worker was for this long after the last of that kind was ready.
constexpr Time::duration kIdentityMemory = std::chrono::seconds(60);
/// Workers that come within this time of a pool's first are as old as it.
constexpr Time::duration kYoung = std::chrono::seconds(10);
/// Of what was known, this much is left of a worker's speed after another prompt.
constexpr double kSpeedMemory = 0.9;
/// The share of the last report in what is usual in a pool.
constexpr double kUsualGain = 0.1;

std::uint64_t name_hash(const std::string& name) {
    return name.empty() ? 0 : std::hash<std::string>{}(name) | 1U;
}

}  // namespace

Registry::Registry(WorkerIndex workers_max, const RegistryOptions& options)
    : ledger_(workers_max),
      workers_max_(workers_max),
      options_(options),
      drawn_(options.seed),
      index_(workers_max, options.index_blocks) {}

// ---- Workers --------------------------------------------------------------------------------------

Registry::PoolState& Registry::pool(PoolIndex index) {
    if (index >= pools_.size()) pools_.resize(index + std::size_t{1});
    return pools_[index];
}

const Registry::PoolState* Registry::find_pool(PoolIndex index) const {
    return index < pools_.size() ? &pools_[index] : nullptr;
}

Result<WorkerIndex> Registry::new_index() {
    auto index = static_cast<WorkerIndex>(workers_.size());
    const auto free = std::ranges::find_if(
        removed_, [&](WorkerIndex each) { return ledger_.leases_of(each) == 0; });
    if (free != removed_.end()) {
        index = *free;
        removed_.erase(free);
        workers_[index] = {};
    } else if (index < workers_max_) {
        workers_.emplace_back();
    } else {
        return std::unexpected(Error::out_of_range("worker", index, workers_max_));
    }
    return index;
}

Result<WorkerIndex> Registry::add_store() {
    const auto index = new_index();
    if (index) stores_.push_back(*index);
    return index;
}

Result<WorkerIndex> Registry::add(WorkerOptions options) {
    const auto added = new_index();
    if (!added) return added;
    const WorkerIndex index = *added;
    Worker& worker = workers_[index];
    auto& members = pool(options.pool).members[static_cast<int>(options.phase)];
    worker.place = static_cast<std::uint32_t>(members.size());
    worker.group = name_hash(options.failure_group);
    worker.options = std::move(options);
    members.push_back(index);
    return index;
}

void Registry::drain(WorkerIndex worker, bool on) { workers_[worker].draining = on; }

void Registry::remove(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (std::exchange(worker.removed, true)) return;
    if (std::erase(stores_, index) > 0) {
        index_.cleared(index);
        removed_.push_back(index);
        return;
    }
    PoolState& pool = this->pool(worker.options.pool);
    if (std::exchange(worker.ready, false)) --pool.ready;
    pool.picks_of_removed += std::exchange(worker.picks, 0);
    auto& members = pool.members[static_cast<int>(worker.options.phase)];
    members.erase(members.begin() + worker.place);
    for (std::uint32_t place = worker.place; place < members.size(); ++place)
        workers_[members[place]].place = place;
    index_.cleared(index);
    removed_.push_back(index);
}

void Registry::set_ready(WorkerIndex index, bool ready, Time now) {
    Worker& worker = workers_[index];
    if (worker.removed || worker.ready == ready) return;
    worker.ready = ready;
    PoolState& pool = this->pool(worker.options.pool);
    if (ready) {
        if (pool.ready++ == 0) pool.began = now;
        // Where all are new, nobody is.
        if (now - pool.began >= kYoung) worker.health.on_ready(now);
        worker.turn = std::max(worker.turn, pool.turn);
    } else {
        --pool.ready;
        worker.ready_until = now;
        worker.reported.forget();
    }
}

void Registry::set_failure_group(WorkerIndex worker, const std::string& group) {
    workers_[worker].group = name_hash(group);
    workers_[worker].options.failure_group = group;
}

std::vector<WorkerIndex> Registry::failure_group(WorkerIndex worker) const {
    std::vector<WorkerIndex> all{worker};
    const std::uint64_t group = workers_[worker].group;
    for (WorkerIndex each = 0; group != 0 && each < workers_.size(); ++each) {
        const Worker& other = workers_[each];
        if (each != worker && !other.removed && other.group == group) all.push_back(each);
    }
    return all;
}

void Registry::set_costs(WorkerIndex worker, const Costs& costs) {
    workers_[worker].options.costs = costs;
}

bool Registry::set_identity(std::span<const WorkerIndex> workers, const std::string& identity,
                            Time now) {
    const std::uint64_t said = name_hash(identity);
    PoolState& pool = this->pool(workers_[workers.front()].options.pool);
    for (const WorkerIndex each : workers) workers_[each].identity = said;
    if (said == pool.identity) return true;
    const auto holds_it = [&](WorkerIndex each) {
        const Worker& other = workers_[each];
        return other.identity == pool.identity &&
               (other.ready || now - other.ready_until < kIdentityMemory);
    };
    const bool held =
        pool.identity != 0 && std::ranges::any_of(pool.members, [&](const auto& kind) {
            return std::ranges::any_of(kind, holds_it);
        });
    if (!held) pool.identity = said;
    return !held;
}

void Registry::set_policy(PoolIndex index, Policy policy) { pool(index).policy = policy; }
void Registry::set_tiers(PoolIndex index, bool on) { pool(index).tiers = on; }

// ---- What is learned ------------------------------------------------------------------------------

void Registry::report(WorkerIndex index, const Report& report, Time now) {
    Worker& worker = workers_[index];
    worker.reported.take(report, ledger_.load(index), worker.options.costs.kv_tokens, now);
    PoolState& pool = this->pool(worker.options.pool);
    const Load& last = worker.reported.last();
    pool.usual_requests += kUsualGain * (last.requests - pool.usual_requests);
    pool.usual_kv_tokens +=
        kUsualGain * (static_cast<double>(last.kv_tokens) - pool.usual_kv_tokens);
    pool.usual = {.requests = static_cast<std::uint32_t>(pool.usual_requests),
                  .kv_tokens = static_cast<std::uint64_t>(pool.usual_kv_tokens)};
}

void Registry::on_result(WorkerIndex index, LegResult result, Time began, Time now) {
    Health& health = workers_[index].health;
    const auto before = health.breaker(now);
    health.on_result(result, began, now);
    const bool tripped =
        before != Health::Breaker::kOpen && health.breaker(now) == Health::Breaker::kOpen;
    if (!tripped || result == LegResult::kMisconfigured) return;
    for (const WorkerIndex each : failure_group(index)) workers_[each].health.trip(now);
}

void Registry::on_restart(WorkerIndex index, Time now) {
    set_ready(index, false, now);
    workers_[index].health.on_restart();
    index_.cleared(index);
}

void Registry::Slowness::learn(double took, double should_take, double of_work) {
    seconds = kSpeedMemory * seconds + took;
    expected = kSpeedMemory * expected + should_take;
    work = kSpeedMemory * work + of_work;
}

void Registry::on_first_token(WorkerIndex index, double work, double seconds) {
    Worker& worker = workers_[index];
    if (work <= 0.0 || seconds <= 0.0) return;
    const double should_take = work / worker.options.costs.prefill_tokens_per_second;
    worker.slowness.learn(seconds, should_take, work);
    pool(worker.options.pool).slowness.learn(seconds, should_take, work);
}

void Registry::expect(WorkerIndex worker, std::span<const BlockHash> blocks, Time now) {
    if (workers_[worker].removed) return;
    if (workers_[worker].events) {
        index_.expect(worker, blocks, now);
    } else {
        index_.stored(worker, blocks);
    }
}

// ---- Numbers --------------------------------------------------------------------------------------

Load Registry::total_load(WorkerIndex index, Time now) const {
    const Worker& worker = workers_[index];
    const PoolState* pool = find_pool(worker.options.pool);
    Load load = ledger_.load(index);
    if (pool != nullptr) load += worker.reported.foreign(pool->usual, now);
    return load;
}

std::uint32_t Registry::ready_in(PoolIndex pool, Time now) const {
    std::uint32_t count = 0;
    for (WorkerIndex worker = 0; worker < workers_.size(); ++worker)
        if (workers_[worker].options.pool == pool && takes_requests(worker, now)) ++count;
    return count;
}

bool Registry::serves(PoolIndex index, LegPhase phase, Time now) const {
    const PoolState* pool = find_pool(index);
    return pool != nullptr &&
           std::ranges::any_of(pool->members[static_cast<int>(phase)],
                               [&](WorkerIndex each) { return takes_requests(each, now); });
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

std::uint64_t Registry::dispatched(PoolIndex index) const {
    const PoolState* pool = find_pool(index);
    std::uint64_t total = pool == nullptr ? 0 : pool->picks_of_removed;
    for (const Worker& worker : workers_)
        if (worker.options.pool == index) total += worker.picks;
    return total;
}

}  // namespace sluice::routing
