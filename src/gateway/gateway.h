#pragma once

// The gateway's server shell: two HTTP servers on one event loop (clients, and the operator's admin
// address), the pools, and the requests that are being answered.
//
// How to plug in: hand a Steering, an AdmissionGate and RequestObservers over in the options, and add
// admin endpoints to `admin_routes()`. All of them run on the loop's thread and outlive the gateway's
// requests: the gateway owns them.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/metrics.h"
#include "base/task_pool.h"
#include "gateway/access.h"
#include "gateway/generation.h"
#include "gateway/kv_bounds_push.h"
#include "gateway/kv_console.h"
#include "gateway/kv_history.h"
#include "gateway/kv_member_push.h"
#include "gateway/kv_members.h"
#include "gateway/kv_node_feeds.h"
#include "gateway/native_pool.h"
#include "gateway/pool_set.h"
#include "gateway/record_endpoints.h"
#include "gateway/record_probe.h"
#include "gateway/request_preparer.h"
#include "gateway/router.h"
#include "gateway/routing_probe.h"
#include "gateway/upstream_pool.h"
#include "gateway/worker_directory.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/http_server.h"

namespace sluice::gateway {

struct GatewayOptions {
    net::HttpServerOptions listen;
    net::HttpServerOptions admin;
    std::vector<NativePoolOptions> native_pools;
    std::vector<UpstreamPoolOptions> upstream_pools;
    std::string stable;  ///< Name of the pool that answers; empty is the first.
    std::size_t queue_max = limits::kQueuedRequests;
    std::chrono::milliseconds deadline = std::chrono::seconds(limits::kRequestSeconds);
    discovery::EtcdOptions
        etcd;             ///< Where workers of native pools stand; without endpoints: nowhere.
    std::string ca_file;  ///< Whose word https workers are believed on; empty: the system's.
    std::shared_ptr<const Access> access;    ///< Null: everybody may ask for everything.
    std::function<void()> on_ready = [] {};  ///< Called once, when a worker can answer.

    /// Made once the pools exist; without it the stable pool answers everything.
    std::function<std::unique_ptr<Steering>(PoolSet& pools)> make_steering;
    std::shared_ptr<AdmissionGate> admission;
    /// A stream that waits longer gets its head, and comments from then on.
    std::chrono::milliseconds headers_after{2'000};
    std::vector<std::shared_ptr<RequestObserver>> observers;
    /// What lost its worker is computed again by those that are left, so many tokens each at a time.
    std::uint64_t resume_tokens = dispatch::ResumePacer::kTokensPerWorker;
    FaultPoints faults{};  ///< Planted on purpose; none in earnest.
    /// What /admin/records, /admin/where and /admin/card read; a RecordKeeper among the observers
    /// writes it. May be null.
    std::shared_ptr<record::RecordStore> records;
    std::vector<KvNode> kv_nodes{};  ///< That the configuration names.
    std::string kv_members_file{};   ///< Where their list is kept; empty: nowhere.
    std::chrono::milliseconds kv_bounds_pace = KvBoundsPush::kPace;
    std::map<std::string, CacheRules, std::less<>> caches{};  ///< By tenant, as admission has them.
};

class Gateway {
public:
    /// Binds both addresses; an error names the one that is taken.
    [[nodiscard]] static Result<std::unique_ptr<Gateway>> create(net::EventLoop& loop,
                                                                 GatewayOptions options);
    ~Gateway();
    Gateway(const Gateway&) = delete;
    Gateway& operator=(const Gateway&) = delete;

    [[nodiscard]] std::uint16_t port() const { return server_->port(); }
    [[nodiscard]] std::uint16_t admin_port() const { return admin_->port(); }

    /// Takes no new requests; calls `on_drained` when the running ones have ended, or were ended
    /// after `grace`.
    void drain(std::chrono::milliseconds grace, std::function<void()> on_drained);

    /// Sends a copy of a request that is about to be dispatched (RequestObserver::on_dispatch) to
    /// `pool`, with its answer collected and nobody to hear it. Copies take no place in the queue:
    /// without a worker that is free now there is none. Returns the copy's rid; empty if none was made.
    std::string copy(const Generation& original, Pool& pool);

    /// Ends a request that lives, as if the service stopped; does nothing if there is none.
    void abandon(std::string_view rid);

    /// The plan has changed: what waits is steered anew.
    void replan();
    /// `pool` takes no more requests; to be called once Steering no longer chooses it.
    void close_pool(Pool& pool, dispatch::Running running);

    /// What runs on this worker goes on elsewhere where it can.
    void evacuate(routing::WorkerIndex worker);

    [[nodiscard]] Router& client_routes() { return client_routes_; }
    [[nodiscard]] Router& admin_routes() { return admin_routes_; }
    [[nodiscard]] PoolSet& pools() { return pools_; }
    [[nodiscard]] WorkerDirectory& directory() { return directory_; }
    [[nodiscard]] Pool& stable() { return *stable_; }
    /// Another pool is the one whose readiness is the gateway's.
    void set_stable(Pool& pool) { stable_ = &pool; }
    /// A request that lives, by its rid or the client's id; nullptr if there is none.
    [[nodiscard]] const Generation* find(std::string_view id) const;

    [[nodiscard]] std::size_t live_requests() const { return live_.size(); }
    [[nodiscard]] std::size_t queued_requests() const {
        return queue_.size() + waiting_for_verdict();
    }
    [[nodiscard]] metrics::Registry& metrics() { return registry_; }

private:
    Gateway(net::EventLoop& loop, GatewayOptions options, KvMembers members);

    enum class Door : std::uint8_t { kClients, kAdmins };

    void add_pools();
    void push_kv_bounds();
    void add_routes();
    /// Answers with 401 and returns false if this caller may not come here.
    /// How many requests admission may let through at a time; nullopt is any number.
    [[nodiscard]] std::optional<std::size_t> room() const;
    [[nodiscard]] std::size_t waiting_for_verdict() const {
        return options_.admission ? options_.admission->waiting() : 0;
    }
    [[nodiscard]] bool let_in(const Exchange& exchange, Door door) const;
    void handle_models(const Exchange& exchange);
    void handle_model(const Exchange& exchange, std::string_view name);
    void handle_ready(const Exchange& exchange);
    void handle_metrics(const Exchange& exchange);

    void refuse_early(Endpoint endpoint, const Exchange& exchange, const protocol::ApiError& error);
    void generate(Endpoint endpoint, const Exchange& exchange);
    [[nodiscard]] Result<InboundRequest> read_request(Endpoint endpoint,
                                                      const Exchange& exchange) const;
    [[nodiscard]] bool beside_loop(std::function<void()> work, std::function<void()> then);
    [[nodiscard]] bool wait_for_worker(Generation& generation);
    void on_pool_ready();
    void serve_queue();
    void serve_one(Pool& pool);
    void abandon_all();
    void on_done(Generation& generation);

    net::EventLoop& loop_;
    GatewayOptions options_;
    metrics::Registry registry_;
    GatewayProbe probe_;
    RoutingProbe routing_probe_{registry_};
    net::HttpClient client_;
    PoolSet pools_;
    ResumeQueue resumes_;
    dispatch::Quarantine quarantine_;
    WorkerDirectory directory_;
    KvMembers kv_members_;
    KvMemberPush kv_push_;
    KvNodeFeeds kv_feeds_;
    std::shared_ptr<KvHistory> kv_history_ = std::make_shared<KvHistory>();
    std::unique_ptr<KvConsole> kv_console_;
    std::unique_ptr<KvBoundsPush> kv_bounds_;
    Pool* stable_ = nullptr;
    std::unique_ptr<Steering> steering_;
    std::unique_ptr<GenerationServices> services_;
    TaskPool tasks_;  ///< Prepares long prompts.
    std::map<const Generation*, std::shared_ptr<Generation>> live_;
    std::deque<std::shared_ptr<Generation>> queue_;
    std::function<void()> on_drained_;
    net::Timer grace_;
    std::unique_ptr<RecordProbe> record_probe_;  ///< Null without records.
    std::unique_ptr<RecordEndpoints> record_endpoints_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);  ///< Expires with this object.
    Router client_routes_;
    Router admin_routes_;
    std::unique_ptr<net::HttpServer> server_;
    std::unique_ptr<net::HttpServer> admin_;
};

}  // namespace sluice::gateway
