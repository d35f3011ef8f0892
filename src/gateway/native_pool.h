#pragma once

// A pool of engines that speak the engine port: which of its workers can answer, and what they say of
// themselves. A worker is ready once it said so and its description was read; one that fails a
// request is asked again before it gets another.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/hold_releaser.h"
#include "adapters/worker_probe.h"
#include "discovery/worker_entry.h"
#include "gateway/pool.h"
#include "gateway/pool_set.h"
#include "gateway/request_preparer.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::gateway {

struct NativePoolOptions {
    std::string name = "stable";
    std::vector<discovery::WorkerEntry> workers{};  ///< Those that are always there.
    std::chrono::milliseconds stall_time{15'000};   ///< Longest silence of a leg.
    /// Of the pool's model; pools of the same model share one.
    std::shared_ptr<const RequestPreparer> preparer;
};

class NativePool final : public Pool {
public:
    /// `on_ready` is called whenever a worker becomes ready.
    NativePool(net::EventLoop& loop, net::HttpClient& client, PoolSet& pools,
               NativePoolOptions options, std::function<void()> on_ready);

    [[nodiscard]] const std::string& name() const override { return options_.name; }
    [[nodiscard]] const std::string& engine() const override;
    [[nodiscard]] const std::string& model() const override {
        return options_.preparer->profile().model;
    }
    [[nodiscard]] routing::PoolIndex index() const override { return index_; }
    [[nodiscard]] dispatch::Rules rules() const override { return {}; }
    [[nodiscard]] std::optional<std::size_t> capacity() const override;
    void start() override;
    [[nodiscard]] Prepared prepare(const InboundRequest& request) const override;
    [[nodiscard]] bool slow_to_prepare(const InboundRequest& request) const override;
    [[nodiscard]] const void* recipe() const override { return options_.preparer.get(); }
    [[nodiscard]] std::unique_ptr<LegRunner> make_runner(
        const InboundRequest& request, std::shared_ptr<const PreparedRequest> prepared,
        LegObserver& observer) override;
    [[nodiscard]] std::expected<Assignment, routing::NoPick> pick(
        const routing::Load& load, const routing::Tried& tried) override;
    void report_success(routing::WorkerIndex) override {}
    void report_fault(routing::WorkerIndex worker, dispatch::LegFault fault) override;
    [[nodiscard]] std::vector<WorkerView> workers() const override;

private:
    struct Worker {
        std::string name;
        std::string url;
        routing::LegPhase phase = routing::LegPhase::kFull;
        routing::WorkerIndex index = 0;
        std::shared_ptr<const port::ServerInfo> info;
        std::unique_ptr<adapters::WorkerProbe> probe;
        net::Timer next_probe;
        std::chrono::milliseconds pause{0};
        bool reachable = false;                ///< The last probe was answered.
        std::optional<port::LoadReport> load;  ///< The last one.
        std::chrono::steady_clock::time_point reported;
    };

    [[nodiscard]] std::string next_name(routing::LegPhase phase) const;
    void probe(Worker& worker);
    void probe_later(Worker& worker);
    void on_load(Worker& worker, const Result<port::LoadReport>& load);
    void on_info(Worker& worker, Result<port::ServerInfo> info);
    void not_ready(Worker& worker, const std::string& reason);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    adapters::HoldReleaser holds_;
    routing::Registry& registry_;
    NativePoolOptions options_;
    std::function<void()> on_ready_;
    routing::PoolIndex index_;
    std::vector<Worker> workers_;  ///< Their number is fixed; indices in the registry are in a row.
};

}  // namespace sluice::gateway
