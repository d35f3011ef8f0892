#include "gateway/worker_set.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"

namespace sluice::gateway {
namespace {

// A ready worker is looked at now and then; one that is gone often at first, since a restart takes
// well under a second, and ever more rarely.
constexpr std::chrono::milliseconds kReadyPause{1'000};
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1'000};

}  // namespace

WorkerSet::WorkerSet(net::EventLoop& loop, net::HttpClient& client, std::vector<std::string> urls,
                     std::function<void()> on_ready)
    : loop_(loop),
      client_(client),
      on_ready_(std::move(on_ready)),
      ledger_(static_cast<WorkerIndex>(urls.size())) {
    for (std::string& url : urls) workers_.push_back({.url = std::move(url)});
}

void WorkerSet::start() {
    for (WorkerIndex index = 0; index < workers_.size(); ++index) probe(index);
}

bool WorkerSet::any_ready() const { return std::ranges::any_of(workers_, &Worker::ready); }

std::optional<Assignment> WorkerSet::pick(const routing::Load& load) {
    std::optional<WorkerIndex> best;
    const auto busyness = [this](WorkerIndex index) {
        const routing::Load& at = ledger_.load(index);
        return std::tuple(at.requests, at.prefill_tokens, index);
    };
    for (WorkerIndex index = 0; index < workers_.size(); ++index)
        if (workers_[index].ready && (!best || busyness(index) < busyness(*best))) best = index;
    if (!best) return std::nullopt;
    auto lease = ledger_.acquire(*best, load);
    if (!lease) return std::nullopt;
    ++dispatched_;
    const Worker& worker = workers_[*best];
    return Assignment{
        .worker = *best, .url = worker.url, .info = worker.info, .lease = std::move(*lease)};
}

WorkerSet::View WorkerSet::view(WorkerIndex index) const {
    const Worker& worker = workers_[index];
    View view{.url = worker.url,
              .info = worker.info,
              .report = worker.report,
              .report_age = std::nullopt,
              .ready = worker.ready,
              .reachable = worker.reachable};
    if (worker.reported) {
        view.report_age = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - *worker.reported);
    }
    return view;
}

void WorkerSet::report_failure(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (worker.ready) log::warn("worker {} failed a request; asking whether it lives", worker.url);
    worker.ready = false;
    worker.pause = std::chrono::milliseconds(0);
    probe(index);
}

void WorkerSet::probe(WorkerIndex index) {
    workers_[index].probe = adapters::WorkerProbe::load(
        client_, workers_[index].url,
        [this, index](Result<port::LoadReport> load) { on_load(index, load); });
}

void WorkerSet::probe_later(WorkerIndex index) {
    Worker& worker = workers_[index];
    worker.next_probe = loop_.call_after(worker.pause, [this, index] { probe(index); });
}

void WorkerSet::on_load(WorkerIndex index, const Result<port::LoadReport>& load) {
    Worker& worker = workers_[index];
    worker.reachable = load.has_value();
    if (!load) return not_ready(index, load.error().message());
    const bool same_process = load->pid == worker.report.pid;
    worker.report = *load;
    worker.reported = std::chrono::steady_clock::now();
    if (load->state != port::EngineState::kReady) return not_ready(index, "it is not ready");
    if (worker.ready && same_process) return probe_later(index);
    // It may be another process than the one before, and even another model.
    worker.probe = adapters::WorkerProbe::info(
        client_, worker.url,
        [this, index](Result<port::ServerInfo> info) { on_info(index, std::move(info)); });
}

void WorkerSet::on_info(WorkerIndex index, Result<port::ServerInfo> info) {
    if (!info) return not_ready(index, info.error().message());
    Worker& worker = workers_[index];
    worker.ready = true;
    worker.info = std::move(*info);
    worker.pause = kReadyPause;
    log::info("worker {} is ready: {} {}", worker.url, worker.info.model,
              worker.info.fingerprint.substr(0, 12));
    probe_later(index);
    on_ready_();
}

void WorkerSet::not_ready(WorkerIndex index, const std::string& reason) {
    Worker& worker = workers_[index];
    if (worker.ready) log::warn("worker {} is gone: {}", worker.url, reason);
    worker.ready = false;
    worker.pause = std::clamp(worker.pause * 2, kFirstPause, kLongestPause);
    probe_later(index);
}

}  // namespace sluice::gateway
