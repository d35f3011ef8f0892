#include "discovery/etcd_view.h"

#include <algorithm>

namespace sluice::discovery {

std::string EtcdView::ask(Time now) {
    full_ = now >= full_due_;
    return range_request(prefix_, full_ ? std::nullopt : std::optional(revision_));
}

void EtcdView::take(const EtcdKeyValue& pair) {
    workers_.erase(pair.key);
    rejected_.erase(pair.key);
    auto worker = parse_worker_json(pair.value);
    if (worker) {
        workers_.emplace(pair.key, std::move(*worker));
    } else {
        rejected_.emplace(pair.key, worker.error().to_string());
    }
}

std::vector<WorkerEntry> EtcdView::workers() const {
    std::vector<WorkerEntry> list;
    list.reserve(workers_.size());
    for (const auto& [key, worker] : workers_) list.push_back(worker);
    return list;
}

Result<std::optional<std::vector<WorkerEntry>>> EtcdView::on_answer(std::string_view json,
                                                                    Time now) {
    const auto range = parse_range(json);
    if (!range) {
        on_failure(now);
        return std::unexpected(range.error());
    }
    silent_since_.reset();
    pause_ = kPause;
    due_ = now + kPause;
    const bool first = revision_ == 0;
    const auto before = workers_;
    if (full_) {
        workers_.clear();
        rejected_.clear();
        full_due_ = now + kResync;
    }
    for (const EtcdKeyValue& pair : range->kvs) take(pair);
    const std::size_t known = workers_.size() + rejected_.size();
    // A store that was put back to an older state has forgotten what we know.
    const bool missed =
        range->revision < revision_ || known != static_cast<std::size_t>(range->count);
    revision_ = range->revision;
    if (missed && !full_) {
        // Keys are gone, and only a whole answer says which.
        full_due_ = due_ = now;
        workers_ = before;
        return std::nullopt;
    }
    if (workers_ == before && !first) return std::nullopt;
    return workers();
}

void EtcdView::on_failure(Time now) {
    if (!silent_since_) silent_since_ = now;
    due_ = now + pause_;
    pause_ = std::min(pause_ * 2, kLongestPause);
    // Whatever comes back may be another store.
    full_due_ = now;
}

}  // namespace sluice::discovery
