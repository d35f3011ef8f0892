#include "gateway/native_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/leg_result.h"
#include "gateway/native_runner.h"

namespace sluice::gateway {
namespace {

// A ready worker is looked at now and then; one that is gone often at first, since a restart takes
// well under a second, and ever more rarely.
constexpr std::chrono::milliseconds kReadyPause{1'000};
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1'000};
constexpr std::chrono::milliseconds kPauseOfEach{2};

/// Bodies above this are prepared beside the event loop: encoding them takes milliseconds.
constexpr std::size_t kInlineBodyBytes = 16 * 1024;

routing::Costs costs_of(const port::ServerInfo& info) {
    routing::Costs costs{.kv_tokens = info.pool_tokens, .block_tokens = info.block_tokens};
    for (const port::KvComponent& each : info.kv_components) {
        costs.replay = std::max(costs.replay, each.replay);
        costs.min_hit = std::max(costs.min_hit, each.min_hit);
    }
    return costs;
}

}  // namespace

NativePool::NativePool(net::EventLoop& loop, net::HttpClient& client, PoolSet& pools,
                       NativePoolOptions options, NativePoolEvents events)
    : loop_(loop),
      client_(client),
      holds_(client),
      registry_(pools.registry()),
      options_(std::move(options)),
      events_(std::move(events)),
      index_(pools.next_index()) {}

const std::string& NativePool::engine() const {
    static const std::string kEngine = "native";
    return kEngine;
}

std::optional<std::size_t> NativePool::capacity() const {
    std::size_t total = 0;
    for (const auto& [index, worker] : workers_) {
        if (registry_.draining(index)) continue;
        // A few more than run wait at the worker, so that a free place is taken in the next step. One
        // that is gone keeps its room: what waits for its return is looked at, and may be refused.
        const std::size_t running =
            worker->info ? worker->info->max_running : limits::kEngineRunning;
        total += running + std::max<std::size_t>(1, running / 8);
    }
    return total;
}

void NativePool::start() {
    started_ = true;
    for (const auto& [unused, worker] : workers_) probe(*worker);
}

Prepared NativePool::prepare(const InboundRequest& request) const {
    auto prepared = options_.preparer->prepare(request.endpoint, request.body());
    if (!prepared) return std::unexpected(prepared.error());
    // What no worker of this model could take does not wait for one.
    const auto fits = resolve_max_tokens(*prepared, options_.preparer->profile().context_tokens);
    if (!fits) return std::unexpected(fits.error());
    return std::make_shared<const PreparedRequest>(std::move(*prepared));
}

bool NativePool::slow_to_prepare(const InboundRequest& request) const {
    return request.body().size() > kInlineBodyBytes;
}

std::unique_ptr<LegRunner> NativePool::make_runner(const InboundRequest& request,
                                                   std::shared_ptr<const PreparedRequest> prepared,
                                                   LegObserver& observer) {
    return std::make_unique<NativeRunner>(
        NativeRunner::Services{.client = client_,
                               .holds = holds_,
                               .tokenizer = options_.preparer->tokenizer(),
                               .stall_time = options_.stall_time},
        request, std::move(prepared), observer);
}

std::expected<Assignment, routing::NoPick> NativePool::pick(routing::Demand demand,
                                                            const routing::Tried& tried) {
    const auto now = std::chrono::steady_clock::now();
    demand.pool = index_;
    demand.phase = leg_for(demand.phase, now);
    auto pick = registry_.pick(demand, tried, now);
    if (!pick) return std::unexpected(pick.error());
    const Worker& worker = *workers_.at(pick->lease.worker());
    return Assignment{.pool = this,
                      .url = worker.entry.url,
                      .worker = worker.name,
                      .info = worker.info,
                      .lease = std::move(pick->lease),
                      .leg = demand.phase,
                      .work = pick->work};
}

/// There is a hand-over only where somebody is there for either side of it.
routing::LegPhase NativePool::leg_for(routing::LegPhase wanted, routing::Time now) const {
    using routing::LegPhase;
    if (wanted == LegPhase::kDecode) return wanted;
    const bool split = wanted == LegPhase::kPrefill &&
                       registry_.serves(index_, LegPhase::kPrefill, now) &&
                       registry_.serves(index_, LegPhase::kDecode, now);
    return split ? wanted : LegPhase::kFull;
}

void NativePool::report_success(routing::WorkerIndex worker) {
    const auto now = std::chrono::steady_clock::now();
    registry_.on_result(worker, routing::LegResult::kSuccess, now, now);
}

void NativePool::report_first_token(routing::WorkerIndex worker, double work, double seconds) {
    registry_.on_first_token(worker, work, seconds);
}

void NativePool::report_fault(routing::WorkerIndex index, dispatch::LegFault fault,
                              dispatch::Time began) {
    const auto now = std::chrono::steady_clock::now();
    registry_.on_result(index, leg_result(fault), began, now);
    using dispatch::LegFault;
    if (fault == LegFault::kFull || fault == LegFault::kRefused || fault == LegFault::kBlocksLost)
        return;
    if (registry_.ready(index))
        log::warn("worker {} failed a request; asking whether it lives",
                  workers_.at(index)->entry.url);
    // What shares its process, or its power, may be gone with it.
    for (const routing::WorkerIndex each : registry_.failure_group(index)) {
        const auto found = workers_.find(each);
        if (found == workers_.end()) continue;  // Another pool's.
        registry_.set_ready(each, false, now);
        found->second->pause = std::chrono::milliseconds(0);
        probe(*found->second);
    }
}

// ---- Who is there ---------------------------------------------------------------------------------

std::string NativePool::next_name(routing::LegPhase phase) {
    const std::uint64_t number = named_[phase]++;
    if (phase == routing::LegPhase::kFull) return fmt::format("{}-{}", options_.name, number);
    return fmt::format("{}-{}-{}", options_.name, to_string(phase), number);
}

NativePool::Worker* NativePool::find(const discovery::WorkerEntry& entry) {
    for (const auto& [unused, worker] : workers_)
        if (worker->entry == entry) return worker.get();
    return nullptr;
}

const NativePool::Worker* NativePool::find(std::string_view name) const {
    for (const auto& [unused, worker] : workers_)
        if (worker->name == name) return worker.get();
    return nullptr;
}

Result<std::string> NativePool::add(const discovery::WorkerEntry& entry) {
    if (Worker* const known = find(entry)) {
        known->leaves = false;
        settle(*known);
        known->pause = std::chrono::milliseconds(0);
        if (started_ && !known->asked) probe(*known);
        return known->name;
    }
    const auto index = registry_.add({.pool = index_, .phase = entry.phase});
    if (!index) return std::unexpected(index.error());
    auto worker = std::make_unique<Worker>();
    worker->name = next_name(entry.phase);
    worker->entry = entry;
    worker->index = *index;
    Worker& added = *workers_.emplace(*index, std::move(worker)).first->second;
    log::info("worker {} of pool {} is at {}", added.name, options_.name, entry.url);
    if (started_) probe(added);
    return added.name;
}

void NativePool::remove(const discovery::WorkerEntry& entry) {
    Worker* const worker = find(entry);
    if (worker == nullptr) return;
    worker->leaves = true;
    settle(*worker);
    sweep();
}

void NativePool::drain(std::string_view name, bool on) {
    const Worker* const found = find(name);
    if (found == nullptr) return;
    Worker& worker = *workers_.at(found->index);
    worker.draining = on;
    settle(worker);
}

void NativePool::settle(Worker& worker) {
    const bool drains = worker.draining || worker.leaves;
    if (registry_.draining(worker.index) == drains) return;
    registry_.drain(worker.index, drains);
    log::info("worker {} {}", worker.name, drains ? "is draining" : "takes requests again");
    if (drains) events_.on_drain(worker.index);
    if (!drains) events_.on_ready();
}

bool NativePool::idle(const Worker& worker) const {
    return registry_.load(worker.index).requests == 0;
}

void NativePool::sweep() {
    for (auto each = workers_.begin(); each != workers_.end();) {
        const Worker& worker = *each->second;
        if (!worker.leaves || !idle(worker)) {
            ++each;
            continue;
        }
        log::info("worker {} is gone from the list", worker.name);
        registry_.remove(worker.index);
        each = workers_.erase(each);
    }
}

std::optional<discovery::WorkerEntry> NativePool::entry_of(std::string_view name) const {
    const Worker* const worker = find(name);
    return worker == nullptr ? std::nullopt : std::optional(worker->entry);
}

std::optional<WorkerView> NativePool::view_of(std::string_view name) const {
    const Worker* const worker = find(name);
    return worker == nullptr ? std::nullopt : std::optional(view(*worker));
}

WorkerView NativePool::view(const Worker& worker) const {
    WorkerView view{.name = worker.name,
                    .url = worker.entry.url,
                    .phase = to_string(worker.entry.phase),
                    .state = "lost",
                    .report = worker.load,
                    .report_age = {},
                    .versions = worker.info,
                    .leases = registry_.load(worker.index).requests,
                    .reason = worker.reason};
    if (worker.reachable) view.state = port::to_string(worker.load->state);
    if (worker.reachable && registry_.draining(worker.index)) view.state = "draining";
    if (worker.load) {
        view.report_age = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - worker.reported);
    }
    return view;
}

std::vector<WorkerView> NativePool::workers() const {
    std::vector<WorkerView> views;
    for (const auto& [unused, worker] : workers_) views.push_back(view(*worker));
    return views;
}

// ---- How they are ---------------------------------------------------------------------------------

void NativePool::probe(Worker& worker) {
    worker.asked = true;
    worker.next_probe.cancel();
    worker.probe = adapters::WorkerProbe::load(
        client_, worker.entry.url,
        [this, &worker](const Result<port::LoadReport>& load) { on_load(worker, load); });
}

/// Thousands of workers are asked more rarely, so that asking stays as cheap as for a few hundred.
std::chrono::milliseconds NativePool::pause_of(const Worker& worker) const {
    if (worker.pause.count() == 0) return worker.pause;
    return std::max(worker.pause, kPauseOfEach * static_cast<std::int64_t>(workers_.size()));
}

void NativePool::probe_later(Worker& worker) {
    worker.asked = false;
    worker.next_probe = loop_.call_after(pause_of(worker), [this, &worker] { probe(worker); });
}

void NativePool::on_load(Worker& worker, const Result<port::LoadReport>& load) {
    worker.reachable = load.has_value();
    if (!load) return not_ready(worker, load.error().message());
    worker.reported = std::chrono::steady_clock::now();
    const bool same_process = worker.load && load->pid == worker.load->pid;
    if (worker.load && !same_process) registry_.on_restart(worker.index, worker.reported);
    worker.load = *load;
    registry_.report(worker.index,
                     {.requests = load->running + load->waiting, .kv_share = load->kv_used_share},
                     worker.reported);
    if (load->state != port::EngineState::kReady) return not_ready(worker, "it is not ready");
    if (registry_.ready(worker.index) && same_process) {
        // Its breaker may have kept it out, and does so no more.
        const bool takes = registry_.takes_requests(worker.index, worker.reported);
        if (std::exchange(worker.kept_out, !takes) && takes) events_.on_ready();
        return probe_later(worker);
    }
    // It may be another process than the one before, and even another model.
    worker.probe = adapters::WorkerProbe::info(
        client_, worker.entry.url,
        [this, &worker](Result<port::ServerInfo> info) { on_info(worker, std::move(info)); });
}

void NativePool::on_info(Worker& worker, Result<port::ServerInfo> info) {
    if (!info) return not_ready(worker, info.error().message());
    worker.info = std::make_shared<const port::ServerInfo>(std::move(*info));
    const auto now = std::chrono::steady_clock::now();
    if (!registry_.set_identity(worker.index, worker.info->fingerprint, now))
        return not_ready(worker, "it serves another model than its pool");
    worker.pause = kReadyPause;
    worker.reason.clear();
    registry_.set_failure_group(worker.index, worker.info->failure_group);
    registry_.set_costs(worker.index, costs_of(*worker.info));
    registry_.set_ready(worker.index, true, now);
    log::info("worker {} is ready: {} {}", worker.entry.url, worker.info->model,
              worker.info->fingerprint.substr(0, 12));
    probe_later(worker);
    events_.on_ready();
}

void NativePool::not_ready(Worker& worker, const std::string& reason) {
    if (registry_.ready(worker.index)) log::warn("worker {} is gone: {}", worker.entry.url, reason);
    worker.reason = reason;
    registry_.set_ready(worker.index, false, std::chrono::steady_clock::now());
    worker.pause = std::clamp(worker.pause * 2, kFirstPause, kLongestPause);
    probe_later(worker);
}

}  // namespace sluice::gateway
