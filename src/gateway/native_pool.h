#pragma once

// A pool of engines that speak the engine port: which of its workers can answer, and what they say of
// themselves. A worker is ready once it said so and its description was read; one that fails a
// request is asked again before it gets another. Workers come and go while the pool serves: one that goes
// is drained first, and forgotten when nothing runs there.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/hold_releaser.h"
#include "adapters/worker_probe.h"
#include "discovery/worker_entry.h"
#include "dispatch/engine_kind.h"
#include "gateway/kv_event_feed.h"
#include "gateway/pool.h"
#include "gateway/pool_set.h"
#include "gateway/request_preparer.h"
#include "gateway/routing_probe.h"
#include "gateway/worker_targets.h"
#include "kv/block_key.h"
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

struct NativePoolEvents {
    std::function<void()> on_ready;  ///< Whenever a worker becomes ready.
    /// A worker takes no more requests: what runs there is to go on elsewhere.
    std::function<void(routing::WorkerIndex worker)> on_drain;
    /// A worker said how it is. May be empty.
    std::function<void(const std::string& url, const port::LoadReport& load)> on_report{};
};

class NativePool final : public Pool {
public:
    NativePool(net::EventLoop& loop, net::HttpClient& client, PoolSet& pools, RoutingProbe& probe,
               NativePoolOptions options, NativePoolEvents events);

    [[nodiscard]] const std::string& name() const override { return options_.name; }
    [[nodiscard]] const std::string& engine() const override;
    [[nodiscard]] const std::string& model() const override {
        return options_.preparer->profile().model;
    }
    [[nodiscard]] routing::PoolIndex index() const override { return index_; }
    [[nodiscard]] dispatch::Rules rules() const override { return dispatch::rules_of(engine()); }
    [[nodiscard]] std::optional<std::size_t> capacity() const override;
    void start() override;
    [[nodiscard]] Prepared prepare(const InboundRequest& request) const override;
    [[nodiscard]] bool slow_to_prepare(const InboundRequest& request) const override;
    [[nodiscard]] const void* recipe() const override { return options_.preparer.get(); }
    [[nodiscard]] std::unique_ptr<LegRunner> make_runner(
        const InboundRequest& request, std::shared_ptr<const PreparedRequest> prepared,
        LegObserver& observer) override;
    [[nodiscard]] std::expected<Assignment, routing::NoPick> pick(
        LegDemand demand, const routing::Tried& tried) override;
    void report_success(routing::WorkerIndex worker) override;
    void report_first_token(routing::WorkerIndex worker, double work, double seconds) override;
    void report_fault(routing::WorkerIndex worker, dispatch::LegFault fault,
                      dispatch::Time began) override;
    [[nodiscard]] std::vector<WorkerView> workers() const override;
    [[nodiscard]] Result<std::vector<kv::BlockKey>> name_prompt(
        std::string_view chat, const kv::Salt& salt) const override;

    /// A worker that is there now, or still: it is asked at once, and one that was going stays. Its
    /// name; error `kOutOfRange` when there are too many.
    [[nodiscard]] Result<std::string> add(const discovery::WorkerEntry& entry);
    /// It takes no more requests, and is forgotten once nothing runs there.
    void remove(const discovery::WorkerEntry& entry);
    /// It takes no more requests, or does again. Does nothing if there is none of this name.
    void drain(std::string_view name, bool on);
    /// Forgets those that were removed and are idle; to be called now and then.
    void sweep();
    /// nullopt if there is none of this name.
    [[nodiscard]] std::optional<discovery::WorkerEntry> entry_of(std::string_view name) const;
    [[nodiscard]] std::optional<WorkerView> view_of(std::string_view name) const;

private:
    struct Worker {
        std::string name;
        discovery::WorkerEntry entry;
        std::unique_ptr<WorkerTargets> targets;
        std::vector<std::unique_ptr<KvEventFeed>> feeds;  ///< By rank; empty without events.
        std::shared_ptr<const port::ServerInfo> info;
        std::unique_ptr<adapters::WorkerProbe> probe;
        net::Timer next_probe;
        std::chrono::milliseconds pause{0};
        bool asked = false;                    ///< A probe is on its way.
        bool draining = false;                 ///< By hand.
        bool leaves = false;                   ///< Removed.
        std::string reason{};                  ///< Why it is not ready.
        bool reachable = false;                ///< The last probe was answered.
        bool kept_out = false;                 ///< By its breaker, when it was last looked at.
        std::optional<port::LoadReport> load;  ///< The last one.
        std::chrono::steady_clock::time_point reported;
    };

    [[nodiscard]] routing::LegPhase leg_for(routing::LegPhase wanted, routing::Time now) const;
    [[nodiscard]] std::string next_name(routing::LegPhase phase);
    [[nodiscard]] Worker* find(const discovery::WorkerEntry& entry) const;
    [[nodiscard]] Worker* find(std::string_view name) const;
    [[nodiscard]] WorkerView view(const Worker& worker) const;
    /// So many as it says it has; an error is the registry's.
    [[nodiscard]] Result<void> set_ranks(Worker& worker, std::size_t ranks);
    [[nodiscard]] std::chrono::milliseconds pause_of(const Worker& worker) const;
    /// What `draining` and `leaves` say.
    void settle(Worker& worker);
    void probe(Worker& worker);
    void probe_later(Worker& worker);
    void on_load(Worker& worker, const Result<port::LoadReport>& load);
    void on_info(Worker& worker, Result<port::ServerInfo> info);
    void follow(Worker& worker);
    void not_ready(Worker& worker, const std::string& reason);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    adapters::HoldReleaser holds_;
    RoutingProbe& routing_probe_;
    routing::Registry& registry_;
    NativePoolOptions options_;
    std::optional<kv::BlockKeyRoot> block_root_;  ///< Of the workers' blocks.
    NativePoolEvents events_;
    routing::PoolIndex index_;
    bool started_ = false;
    std::map<routing::LegPhase, std::uint64_t> named_;  ///< Names given so far.
    std::vector<std::unique_ptr<Worker>> workers_;
    std::map<routing::WorkerIndex, Worker*> by_target_;
};

}  // namespace sluice::gateway
