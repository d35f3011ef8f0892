#pragma once

// The workers of a pool: which of them can answer, what they say of themselves, and how much each is
// doing. A worker is ready once it said so and its description was read; one that fails a request is
// asked again before it gets another.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/worker_probe.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "port/load_report.h"
#include "port/server_info.h"
#include "routing/ledger.h"

namespace sluice::gateway {

using routing::WorkerIndex;

/// A worker chosen for a request, counted for as long as this lives.
struct Assignment {
    WorkerIndex worker = 0;
    std::string url;
    port::ServerInfo info;
    routing::Lease lease;
};

class WorkerSet {
public:
    /// `on_ready` is called whenever a worker becomes ready.
    WorkerSet(net::EventLoop& loop, net::HttpClient& client, std::vector<std::string> urls,
              std::function<void()> on_ready);
    WorkerSet(const WorkerSet&) = delete;
    WorkerSet& operator=(const WorkerSet&) = delete;

    void start();

    [[nodiscard]] bool any_ready() const;
    /// The ready worker with the fewest requests; of equals, the one with fewer tokens to prefill.
    [[nodiscard]] std::optional<Assignment> pick(const routing::Load& load);
    /// A request on this worker failed in a way that is not the client's doing.
    void report_failure(WorkerIndex worker);

    /// What is known of a worker now.
    struct View {
        const std::string& url;
        const port::ServerInfo& info;                         ///< Of the last time it was ready.
        const port::LoadReport& report;                       ///< The last one.
        std::optional<std::chrono::milliseconds> report_age;  ///< Absent if it never answered.
        bool ready = false;
        bool reachable = false;  ///< The last probe was answered.
    };
    [[nodiscard]] View view(WorkerIndex index) const;
    /// Requests given to a worker so far, again after a loss included.
    [[nodiscard]] std::uint64_t dispatched() const { return dispatched_; }

    [[nodiscard]] std::uint64_t leases() const { return ledger_.leases(); }
    [[nodiscard]] std::size_t size() const { return workers_.size(); }

private:
    struct Worker {
        std::string url;
        bool ready = false;
        bool reachable = false;
        port::ServerInfo info;
        port::LoadReport report;
        std::optional<std::chrono::steady_clock::time_point> reported;
        std::unique_ptr<adapters::WorkerProbe> probe;
        net::Timer next_probe;
        std::chrono::milliseconds pause{0};
    };

    void probe(WorkerIndex index);
    void probe_later(WorkerIndex index);
    void on_load(WorkerIndex index, const Result<port::LoadReport>& load);
    void on_info(WorkerIndex index, Result<port::ServerInfo> info);
    void not_ready(WorkerIndex index, const std::string& reason);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    std::function<void()> on_ready_;
    routing::Ledger ledger_;
    std::vector<Worker> workers_;
    std::uint64_t dispatched_ = 0;
};

}  // namespace sluice::gateway
