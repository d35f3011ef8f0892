#pragma once

// A pass-through pool: OpenAI-compatible addresses that are given the client's own request.
//
// An address is ready while its /models (or, where there is none, /health) answers. It is taken out
// by what it does with requests, too, as routing/health.h has it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/openai_leg.h"
#include "gateway/pool.h"
#include "gateway/pool_set.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::gateway {

enum class UsagePolicy : std::uint8_t {
    kAlways,   ///< Streams are asked for usage; who did not ask does not get the extra event.
    kAsAsked,  ///< The body stays as it is; then records may have no token counts.
};

/// What keeps one tenant from learning by its times what another one asked.
enum class CacheIsolation : std::uint8_t {
    kSalt,    ///< Each request brings its tenant's salt, in the engine's own field.
    kNone,    ///< Nothing: the pool may serve one tenant.
    kShared,  ///< Nothing, and the configuration says that tenants may share.
};

struct UpstreamPoolOptions {
    std::string name;
    std::string engine = "openai";
    std::vector<std::string> urls;      ///< "http://10.0.0.7:8000/v1"
    std::string api_key;                ///< Never logged.
    std::string model;                  ///< The name clients use; empty takes every name.
    std::string upstream_model;         ///< What it is called there; empty: the same.
    std::uint32_t max_concurrency = 0;  ///< Of each address; 0 is unknown, and not limited.
    UsagePolicy usage = UsagePolicy::kAlways;
    CacheIsolation isolation = CacheIsolation::kNone;
    adapters::OpenAiLegOptions times;
};

class UpstreamPool final : public Pool {
public:
    /// `on_ready` is called whenever an address becomes ready.
    UpstreamPool(net::EventLoop& loop, net::HttpClient& client, PoolSet& pools,
                 UpstreamPoolOptions options, std::function<void()> on_ready);
    ~UpstreamPool() override;

    [[nodiscard]] const std::string& name() const override { return options_.name; }
    [[nodiscard]] const std::string& engine() const override { return options_.engine; }
    [[nodiscard]] const std::string& model() const override { return options_.model; }
    [[nodiscard]] routing::PoolIndex index() const override { return index_; }
    [[nodiscard]] dispatch::Rules rules() const override;
    void start() override;
    [[nodiscard]] Prepared prepare(const InboundRequest&) const override { return nullptr; }
    [[nodiscard]] bool slow_to_prepare(const InboundRequest&) const override { return false; }
    [[nodiscard]] const void* recipe() const override { return nullptr; }
    [[nodiscard]] std::unique_ptr<LegRunner> make_runner(
        const InboundRequest& request, std::shared_ptr<const PreparedRequest> prepared,
        LegObserver& observer) override;
    [[nodiscard]] std::expected<Assignment, routing::NoPick> pick(
        LegDemand demand, const routing::Tried& tried) override;
    void report_success(routing::WorkerIndex worker) override;
    void report_fault(routing::WorkerIndex worker, dispatch::LegFault fault,
                      dispatch::Time began) override;
    [[nodiscard]] std::vector<WorkerView> workers() const override;
    [[nodiscard]] std::optional<std::size_t> capacity() const override;

private:
    struct Address;

    [[nodiscard]] Address& at(routing::WorkerIndex worker);
    void probe(Address& address);
    void probe_later(Address& address, std::chrono::milliseconds pause);
    /// `broken` says why there is no status.
    void on_probe(Address& address, int status, const std::string& broken);
    void become_ready(Address& address);
    void take_out(Address& address, std::string_view reason);
    void on_tripped(Address& address, dispatch::LegFault fault);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    routing::Registry& registry_;
    const UpstreamPoolOptions options_;
    std::function<void()> on_ready_;
    routing::PoolIndex index_;
    std::vector<std::unique_ptr<Address>> addresses_;  ///< Their indices are in a row.
};

}  // namespace sluice::gateway
