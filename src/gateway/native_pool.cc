#include "gateway/native_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/native_runner.h"

namespace sluice::gateway {
namespace {

// A ready worker is looked at now and then; one that is gone often at first, since a restart takes
// well under a second, and ever more rarely.
constexpr std::chrono::milliseconds kReadyPause{1'000};
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1'000};

/// Bodies above this are prepared beside the event loop: encoding them takes milliseconds.
constexpr std::size_t kInlineBodyBytes = 16 * 1024;

}  // namespace

NativePool::NativePool(net::EventLoop& loop, net::HttpClient& client, PoolSet& pools,
                       NativePoolOptions options, std::function<void()> on_ready)
    : loop_(loop),
      client_(client),
      holds_(client),
      registry_(pools.registry()),
      options_(std::move(options)),
      on_ready_(std::move(on_ready)),
      index_(pools.next_index()) {
    for (const discovery::WorkerEntry& entry : options_.workers) {
        const auto index = registry_.add({.pool = index_});
        SLUICE_ASSERT(index.has_value());  // The configuration's limits are below the registry's.
        workers_.push_back({.name = next_name(entry.phase),
                            .url = entry.url,
                            .phase = entry.phase,
                            .index = *index});
    }
}

std::string NativePool::next_name(routing::LegPhase phase) const {
    const auto before = std::ranges::count(workers_, phase, &Worker::phase);
    if (phase == routing::LegPhase::kFull) return fmt::format("{}-{}", options_.name, before);
    return fmt::format("{}-{}-{}", options_.name, to_string(phase), before);
}

const std::string& NativePool::engine() const {
    static const std::string kEngine = "native";
    return kEngine;
}

std::optional<std::size_t> NativePool::capacity() const {
    std::size_t total = 0;
    for (const Worker& worker : workers_) {
        // A few more than run wait at the worker, so that a free place is taken in the next step. One
        // that is gone keeps its room: what waits for its return is looked at, and may be refused.
        const std::size_t running = worker.info ? worker.info->max_running : limits::kEngineRunning;
        total += running + std::max<std::size_t>(1, running / 8);
    }
    return total;
}

void NativePool::start() {
    for (Worker& worker : workers_) probe(worker);
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

std::expected<Assignment, routing::NoPick> NativePool::pick(const routing::Load& load,
                                                            const routing::Tried& tried) {
    auto lease = registry_.pick(index_, load, tried);
    if (!lease) return std::unexpected(lease.error());
    const std::size_t at = lease->worker() - workers_.front().index;
    const Worker& worker = workers_[at];
    return Assignment{.pool = this,
                      .url = worker.url,
                      .worker = worker.name,
                      .info = worker.info,
                      .lease = std::move(*lease)};
}

void NativePool::report_fault(routing::WorkerIndex index, dispatch::LegFault fault) {
    using dispatch::LegFault;
    if (fault == LegFault::kFull || fault == LegFault::kRefused || fault == LegFault::kBlocksLost)
        return;
    Worker& worker = workers_[index - workers_.front().index];
    if (registry_.ready(index))
        log::warn("worker {} failed a request; asking whether it lives", worker.url);
    registry_.set_ready(index, false);
    worker.pause = std::chrono::milliseconds(0);
    probe(worker);
}

std::vector<WorkerView> NativePool::workers() const {
    std::vector<WorkerView> views;
    const auto now = std::chrono::steady_clock::now();
    for (const Worker& worker : workers_) {
        WorkerView view{
            .name = worker.name,
            .url = worker.url,
            .phase = to_string(worker.phase),
            .state = std::string(worker.reachable ? port::to_string(worker.load->state) : "lost"),
            .report = worker.load,
            .report_age = {},
            .versions = worker.info};
        if (worker.load) {
            view.report_age =
                std::chrono::duration_cast<std::chrono::milliseconds>(now - worker.reported);
        }
        views.push_back(std::move(view));
    }
    return views;
}

void NativePool::probe(Worker& worker) {
    worker.probe = adapters::WorkerProbe::load(
        client_, worker.url,
        [this, &worker](const Result<port::LoadReport>& load) { on_load(worker, load); });
}

void NativePool::probe_later(Worker& worker) {
    worker.next_probe = loop_.call_after(worker.pause, [this, &worker] { probe(worker); });
}

void NativePool::on_load(Worker& worker, const Result<port::LoadReport>& load) {
    worker.reachable = load.has_value();
    if (!load) return not_ready(worker, load.error().message());
    const bool same_process = worker.load && load->pid == worker.load->pid;
    worker.load = *load;
    worker.reported = std::chrono::steady_clock::now();
    if (load->state != port::EngineState::kReady) return not_ready(worker, "it is not ready");
    if (registry_.ready(worker.index) && same_process) return probe_later(worker);
    // It may be another process than the one before, and even another model.
    worker.probe = adapters::WorkerProbe::info(
        client_, worker.url,
        [this, &worker](Result<port::ServerInfo> info) { on_info(worker, std::move(info)); });
}

void NativePool::on_info(Worker& worker, Result<port::ServerInfo> info) {
    if (!info) return not_ready(worker, info.error().message());
    worker.info = std::make_shared<const port::ServerInfo>(std::move(*info));
    worker.pause = kReadyPause;
    registry_.set_failure_group(worker.index, worker.info->failure_group);
    registry_.set_ready(worker.index, true);
    log::info("worker {} is ready: {} {}", worker.url, worker.info->model,
              worker.info->fingerprint.substr(0, 12));
    probe_later(worker);
    on_ready_();
}

void NativePool::not_ready(Worker& worker, const std::string& reason) {
    if (registry_.ready(worker.index)) log::warn("worker {} is gone: {}", worker.url, reason);
    registry_.set_ready(worker.index, false);
    worker.pause = std::clamp(worker.pause * 2, kFirstPause, kLongestPause);
    probe_later(worker);
}

}  // namespace sluice::gateway
