#include "gateway/worker_directory.h"

#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace sluice::gateway {
namespace {

using discovery::Change;
using discovery::WorkerEntry;

/// How often leases are looked at, and workers that go.
constexpr std::chrono::seconds kLookPause{1};

Error no_worker(std::string_view name) {
    return {ErrorCode::kNotFound, fmt::format("there is no worker \"{}\" here", name), "name"};
}

}  // namespace

WorkerDirectory::WorkerDirectory(net::EventLoop& loop, net::HttpClient& client,
                                 discovery::EtcdOptions etcd)
    : loop_(loop), membership_(limits::kRegistryWorkers) {
    if (etcd.endpoints.empty()) return;
    etcd_ = std::make_unique<discovery::EtcdFollower>(
        loop, client, std::move(etcd),
        [this](const std::vector<WorkerEntry>& workers) { on_etcd(workers); });
}

void WorkerDirectory::add_static(const std::vector<WorkerEntry>& workers) {
    for (const WorkerEntry& worker : workers) {
        const auto changes = membership_.add_static(worker);
        if (!changes) return log::error("worker {}: {}", worker.url, changes.error().message());
        carry_out(*changes);
    }
}

void WorkerDirectory::start() {
    if (etcd_) etcd_->start();
    look_later();
}

void WorkerDirectory::look_later() {
    look_ = loop_.call_after(kLookPause, [this] {
        carry_out(membership_.expire(std::chrono::steady_clock::now()));
        for (const auto& [unused, pool] : pools_) pool->sweep();
        look_later();
    });
}

void WorkerDirectory::on_etcd(const std::vector<WorkerEntry>& workers) {
    // Other gateways' pools may stand there, too.
    std::vector<WorkerEntry> ours;
    for (const WorkerEntry& worker : workers)
        if (pools_.contains(worker.pool)) ours.push_back(worker);
    carry_out(membership_.replace_etcd(ours));
    if (const std::size_t left_out = membership_.left_out())
        log::error("etcd has {} workers more than the {} that a gateway can have", left_out,
                   limits::kRegistryWorkers);
}

void WorkerDirectory::carry_out(const discovery::Changes& changes) {
    for (const Change& change : changes) {
        NativePool& pool = *pools_.at(change.worker.pool);
        if (change.kind == Change::Kind::kRemove) {
            pool.remove(change.worker);
        } else if (const auto name = pool.add(change.worker); !name) {
            log::error("worker {}: {}", change.worker.url, name.error().message());
        }
    }
}

Result<std::string> WorkerDirectory::announce(const WorkerEntry& worker,
                                              std::optional<std::chrono::milliseconds> lease) {
    const auto pool = pools_.find(worker.pool);
    if (pool == pools_.end())
        return std::unexpected(Error(
            ErrorCode::kNotFound,
            fmt::format("there is no pool \"{}\" of our own engines here", worker.pool), "pool"));
    const auto changes = membership_.announce(worker, lease, std::chrono::steady_clock::now());
    if (!changes) return std::unexpected(changes.error());
    carry_out(*changes);
    // A renewal may be a process that has just come up.
    return pool->second->add(worker);
}

NativePool* WorkerDirectory::pool_of(std::string_view worker) const {
    for (const auto& [unused, pool] : pools_)
        if (pool->entry_of(worker)) return pool;
    return nullptr;
}

Result<void> WorkerDirectory::withdraw(std::string_view name) {
    NativePool* const pool = pool_of(name);
    if (pool == nullptr) return std::unexpected(no_worker(name));
    const WorkerEntry worker = *pool->entry_of(name);
    if (membership_.in_etcd(worker.pool, worker.url))
        return std::unexpected(Error::unsupported(
            fmt::format("{} stands in etcd: its key must be deleted there", name), "name"));
    carry_out(membership_.withdraw(worker.pool, worker.url));
    return {};
}

Result<void> WorkerDirectory::drain(std::string_view name, bool on) {
    NativePool* const pool = pool_of(name);
    if (pool == nullptr) return std::unexpected(no_worker(name));
    pool->drain(name, on);
    return {};
}

std::optional<WorkerView> WorkerDirectory::find(std::string_view name) const {
    for (const auto& [unused, pool] : pools_)
        if (auto view = pool->view_of(name)) return view;
    return std::nullopt;
}

}  // namespace sluice::gateway
