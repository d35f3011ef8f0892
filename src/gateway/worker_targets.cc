#include "gateway/worker_targets.h"

#include <algorithm>
#include <utility>

namespace sluice::gateway {
WorkerTargets::WorkerTargets(routing::Registry& registry, routing::WorkerOptions options)
    : registry_(registry), options_(std::move(options)) {}

WorkerTargets::~WorkerTargets() {
    for (const routing::WorkerIndex each : indices_) registry_.remove(each);
}

Result<void> WorkerTargets::resize(std::size_t ranks) {
    for (; indices_.size() > ranks; indices_.pop_back()) registry_.remove(indices_.back());
    while (indices_.size() < ranks) {
        const auto index = registry_.add(options_);
        if (!index) return std::unexpected(index.error());
        if (!indices_.empty()) registry_.drain(*index, draining());
        indices_.push_back(*index);
    }
    return {};
}

std::optional<std::uint32_t> WorkerTargets::rank_of(routing::WorkerIndex target) const {
    if (indices_.size() == 1) return std::nullopt;
    return static_cast<std::uint32_t>(std::ranges::find(indices_, target) - indices_.begin());
}

void WorkerTargets::set_ready(bool ready, routing::Time now) {
    for (const routing::WorkerIndex each : indices_) registry_.set_ready(each, ready, now);
}

bool WorkerTargets::takes_requests(routing::Time now) const {
    return std::ranges::any_of(
        indices_, [&](routing::WorkerIndex each) { return registry_.takes_requests(each, now); });
}

void WorkerTargets::drain(bool on) {
    for (const routing::WorkerIndex each : indices_) registry_.drain(each, on);
}

std::uint32_t WorkerTargets::requests() const {
    std::uint32_t total = 0;
    for (const routing::WorkerIndex each : indices_) total += registry_.load(each).requests;
    return total;
}

void WorkerTargets::report(const port::LoadReport& load, routing::Time now) {
    take_load_times(load);
    const bool by_rank = load.ranks.size() == indices_.size();
    for (std::size_t rank = 0; rank < indices_.size(); ++rank) {
        std::uint32_t requests = load.running + load.waiting;
        float kv_share = load.kv_used_share;
        if (by_rank) {
            requests = load.ranks[rank].running + load.ranks[rank].waiting;
            kv_share = load.ranks[rank].kv_used_share;
        }
        registry_.report(indices_[rank], {.requests = requests, .kv_share = kv_share}, now);
    }
}

void WorkerTargets::take_load_times(const port::LoadReport& load) {
    if (load.kv_node_token_ns > 0) costs_.store_seconds_per_token = 1e-9 * load.kv_node_token_ns;
    if (load.kv_peer_token_ns > 0) costs_.peer_seconds_per_token = 1e-9 * load.kv_peer_token_ns;
    for (const routing::WorkerIndex each : indices_) registry_.set_costs(each, costs_);
}

void WorkerTargets::on_restart(routing::Time now) {
    for (const routing::WorkerIndex each : indices_) registry_.on_restart(each, now);
}

void WorkerTargets::set_costs(const port::ServerInfo& info) {
    costs_.attention_tokens = static_cast<double>(info.attention_tokens);
    costs_.kv_tokens = info.pool_tokens;
    costs_.block_tokens = info.block_tokens;
    costs_.replay = 0;
    costs_.min_hit = 0;
    for (const port::KvComponent& each : info.kv_components) {
        costs_.replay = std::max(costs_.replay, each.replay);
        costs_.min_hit = std::max(costs_.min_hit, each.min_hit);
    }
}

bool WorkerTargets::describe(const port::ServerInfo& info, const std::string& name,
                             routing::Time now) {
    set_costs(info);
    for (const routing::WorkerIndex each : indices_) {
        const bool alone = indices_.size() == 1 || !info.failure_group.empty();
        registry_.set_failure_group(each, alone ? info.failure_group : name);
        registry_.set_costs(each, costs_);
        // Who asks a process with several caches for blocks would not know which of them has them.
        registry_.set_lends(each, indices_.size() == 1 && !info.kv_components.empty());
    }
    return registry_.set_identity(indices_, info.fingerprint, now);
}

}  // namespace sluice::gateway
