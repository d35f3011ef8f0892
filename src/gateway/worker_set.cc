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
    const Worker& worker = workers_[*best];
    return Assignment{
        .worker = *best, .url = worker.url, .info = worker.info, .lease = std::move(*lease)};
}

void WorkerSet::report_failure(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (worker.ready) log::warn("worker {} failed a request; asking whether it lives", worker.url);
    worker.ready = false;
    worker.pause = std::chrono::milliseconds(0);
    probe(index);
}

void WorkerSet::probe(WorkerIndex index) {
    workers_[index].probe = adapters::WorkerProbe::start(
        client_, workers_[index].url, [this, index](Result<port::ServerInfo> answer) {
            on_answer(index, std::move(answer));
        });
}

void WorkerSet::probe_later(WorkerIndex index) {
    Worker& worker = workers_[index];
    worker.next_probe = loop_.call_after(worker.pause, [this, index] { probe(index); });
}

void WorkerSet::on_answer(WorkerIndex index, Result<port::ServerInfo> answer) {
    Worker& worker = workers_[index];
    if (!answer) {
        if (worker.ready) log::warn("worker {} is gone: {}", worker.url, answer.error().message());
        worker.ready = false;
        worker.pause = std::clamp(worker.pause * 2, kFirstPause, kLongestPause);
        return probe_later(index);
    }
    const bool was_ready = std::exchange(worker.ready, true);
    worker.info = std::move(*answer);
    worker.pause = kReadyPause;
    probe_later(index);
    if (was_ready) return;
    last_info_ = worker.info;
    log::info("worker {} is ready: {} {}", worker.url, worker.info.model,
              worker.info.fingerprint.substr(0, 12));
    on_ready_();
}

}  // namespace sluice::gateway
