#include "gateway/native_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/log.h"
#include "dispatch/leg_result.h"
#include "gateway/block_chain.h"
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

}  // namespace

NativePool::NativePool(net::EventLoop& loop, net::HttpClient& client, PoolSet& pools,
                       RoutingProbe& probe, NativePoolOptions options, NativePoolEvents events)
    : loop_(loop),
      client_(client),
      holds_(client),
      routing_probe_(probe),
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
    for (const auto& worker : workers_) {
        if (worker->targets->draining()) continue;
        // A few more than run wait at the worker, so that a free place is taken in the next step. One
        // that is gone keeps its room: what waits for its return is looked at, and may be refused.
        const std::size_t running =
            worker->info ? worker->info->max_running : limits::kEngineRunning;
        total +=
            (running + std::max<std::size_t>(1, running / 8)) * worker->targets->indices().size();
    }
    return total;
}

void NativePool::start() {
    started_ = true;
    for (const auto& worker : workers_) probe(*worker);
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

std::expected<Assignment, routing::NoPick> NativePool::pick(LegDemand demand,
                                                            const routing::Tried& tried) {
    const auto now = std::chrono::steady_clock::now();
    demand.pool = index_;
    demand.phase = leg_for(demand.phase, now);
    if (demand.chain != nullptr && block_root_)
        demand.blocks = demand.chain->hashes(*block_root_, demand.prompt, demand.answer);
    auto pick = registry_.pick(demand, tried, now);
    if (!pick) return std::unexpected(pick.error());
    registry_.expect(pick->lease.worker(), demand.blocks, now);
    routing_probe_.matched(pick->matched_tokens);
    const Worker& worker = *by_target_.at(pick->lease.worker());
    const auto rank = worker.targets->rank_of(pick->lease.worker());
    std::optional<Lender> lender;
    if (pick->peer) {
        lender = Lender{.url = by_target_.at(pick->peer->worker)->entry.url,
                        .blocks = pick->peer->blocks};
        routing_probe_.lent(std::uint64_t{lender->blocks} * worker.info->block_tokens -
                            pick->matched_tokens);
    }
    return Assignment{.pool = this,
                      .url = worker.entry.url,
                      .worker = worker.name,
                      .info = worker.info,
                      .lease = std::move(pick->lease),
                      .leg = demand.phase,
                      .rank = rank,
                      .lender = std::move(lender),
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
    if (!dispatch::may_be_gone(fault)) return;
    // What shares its process, or its power, may be gone with it.
    std::set<Worker*> suspects;
    for (const routing::WorkerIndex each : registry_.failure_group(index)) {
        const auto found = by_target_.find(each);  // Or another pool's.
        if (found != by_target_.end()) suspects.insert(found->second);
    }
    for (Worker* const worker : suspects) {
        if (worker->targets->ready())
            log::warn("worker {} failed a request; asking whether it lives", worker->entry.url);
        worker->targets->set_ready(false, now);
        worker->pause = std::chrono::milliseconds(0);
        probe(*worker);
    }
}

Result<std::vector<kv::BlockKey>> NativePool::name_prompt(std::string_view chat,
                                                          const kv::Salt& salt) const {
    if (!block_root_)
        return std::unexpected(
            Error(ErrorCode::kUnavailable, "no worker has said yet how it names its blocks"));
    const auto prepared = options_.preparer->prepare(Endpoint::kChat, chat);
    if (!prepared)
        return std::unexpected(Error::invalid(prepared.error().message, prepared.error().param));
    kv::Salt placed = salt;
    placed.own_from = prepared->own_from;
    return kv::KeyChain(*block_root_, placed).keys(prepared->prompt);
}

// ---- Who is there ---------------------------------------------------------------------------------

std::string NativePool::next_name(routing::LegPhase phase) {
    const std::uint64_t number = named_[phase]++;
    if (phase == routing::LegPhase::kFull) return fmt::format("{}-{}", options_.name, number);
    return fmt::format("{}-{}-{}", options_.name, to_string(phase), number);
}

NativePool::Worker* NativePool::find(const discovery::WorkerEntry& entry) const {
    for (const auto& worker : workers_)
        if (worker->entry == entry) return worker.get();
    return nullptr;
}

NativePool::Worker* NativePool::find(std::string_view name) const {
    for (const auto& worker : workers_)
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
    auto worker = std::make_unique<Worker>();
    worker->targets = std::make_unique<WorkerTargets>(
        registry_, routing::WorkerOptions{.pool = index_, .phase = entry.phase});
    // How many ranks it has it will say.
    if (const auto room = set_ranks(*worker, 1); !room) return std::unexpected(room.error());
    worker->name = next_name(entry.phase);
    worker->entry = entry;
    Worker& added = *workers_.emplace_back(std::move(worker));
    log::info("worker {} of pool {} is at {}", added.name, options_.name, entry.url);
    if (started_) probe(added);
    return added.name;
}

Result<void> NativePool::set_ranks(Worker& worker, std::size_t ranks) {
    std::erase_if(by_target_, [&](const auto& each) { return each.second == &worker; });
    const auto done = worker.targets->resize(ranks);
    for (const routing::WorkerIndex each : worker.targets->indices()) by_target_[each] = &worker;
    return done;
}

void NativePool::remove(const discovery::WorkerEntry& entry) {
    Worker* const worker = find(entry);
    if (worker == nullptr) return;
    worker->leaves = true;
    settle(*worker);
    sweep();
}

void NativePool::drain(std::string_view name, bool on) {
    Worker* const worker = find(name);
    if (worker == nullptr) return;
    worker->draining = on;
    settle(*worker);
}

void NativePool::settle(Worker& worker) {
    const bool drains = worker.draining || worker.leaves;
    if (worker.targets->draining() == drains) return;
    worker.targets->drain(drains);
    log::info("worker {} {}", worker.name, drains ? "is draining" : "takes requests again");
    if (!drains) return events_.on_ready();
    for (const routing::WorkerIndex each : worker.targets->indices()) events_.on_drain(each);
}

void NativePool::sweep() {
    std::erase_if(workers_, [this](const std::unique_ptr<Worker>& worker) {
        if (!worker->leaves || worker->targets->requests() > 0) return false;
        log::info("worker {} is gone from the list", worker->name);
        for (const routing::WorkerIndex each : worker->targets->indices()) by_target_.erase(each);
        return true;
    });
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
                    .leases = worker.targets->requests(),
                    .events = registry_.events(worker.targets->first()),
                    .reason = worker.reason};
    if (worker.reachable) view.state = port::to_string(worker.load->state);
    if (worker.reachable && worker.targets->draining()) view.state = "draining";
    if (worker.load) {
        view.report_age = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - worker.reported);
    }
    return view;
}

std::vector<WorkerView> NativePool::workers() const {
    std::vector<WorkerView> views;
    views.reserve(workers_.size());
    for (const auto& worker : workers_) views.push_back(view(*worker));
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
    if (worker.load && !same_process) {
        worker.feeds.clear();
        worker.targets->on_restart(worker.reported);
    }
    worker.load = *load;
    if (events_.on_report) events_.on_report(worker.entry.url, *load);
    worker.targets->report(*load, worker.reported);
    if (load->state != port::EngineState::kReady) return not_ready(worker, "it is not ready");
    if (worker.targets->ready() && same_process) {
        // Its breaker may have kept it out, and does so no more.
        const bool takes = worker.targets->takes_requests(worker.reported);
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
    if (const auto room = set_ranks(worker, std::max(1U, worker.info->dp_ranks)); !room)
        return not_ready(worker, room.error().message());
    if (!worker.targets->describe(*worker.info, worker.name, now))
        return not_ready(worker, "it serves another model than its pool");
    worker.pause = kReadyPause;
    worker.reason.clear();
    worker.targets->set_ready(true, now);
    follow(worker);
    log::info("worker {} is ready: {} {}", worker.entry.url, worker.info->model,
              worker.info->fingerprint.substr(0, 12));
    probe_later(worker);
    events_.on_ready();
}

/// What the caches of a worker hold is followed from its start to its end.
void NativePool::follow(Worker& worker) {
    const auto root = block_root(*worker.info);
    const auto targets = worker.targets->indices();
    if (!root) return worker.feeds.clear();
    block_root_ = root;
    if (worker.feeds.size() == targets.size()) return;
    worker.feeds.clear();
    for (std::uint32_t rank = 0; rank < targets.size(); ++rank) {
        worker.feeds.push_back(std::make_unique<KvEventFeed>(
            loop_, client_, registry_, routing_probe_, worker.entry.url, targets[rank],
            KvEventFeedOptions{.rank = rank}));
        worker.feeds.back()->start();
    }
}

void NativePool::not_ready(Worker& worker, const std::string& reason) {
    if (worker.targets->ready()) log::warn("worker {} is gone: {}", worker.entry.url, reason);
    worker.reason = reason;
    worker.targets->set_ready(false, std::chrono::steady_clock::now());
    worker.pause = std::clamp(worker.pause * 2, kFirstPause, kLongestPause);
    probe_later(worker);
}

}  // namespace sluice::gateway
