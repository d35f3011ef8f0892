#include "gateway/upstream_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "dispatch/engine_kind.h"
#include "dispatch/leg_result.h"
#include "gateway/upstream_runner.h"
#include "net/url.h"

namespace sluice::gateway {
namespace {

using dispatch::LegFault;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kProbeTime{2'000};
constexpr milliseconds kReadyPause{5'000};
constexpr milliseconds kGonePause{250};
constexpr milliseconds kLongestGonePause{5'000};

}  // namespace

struct UpstreamPool::Address {
    std::string url;     ///< "http://10.0.0.7:8000/v1"
    std::string health;  ///< "http://10.0.0.7:8000/health"
    routing::WorkerIndex index = 0;
    std::shared_ptr<const port::ServerInfo> info;
    std::unique_ptr<net::HttpCall> probe;
    net::Timer next_probe;
    net::Timer next_trial;     ///< Of one that its breaker keeps out.
    bool asks_health = false;  ///< It has no /models.
    bool answered = false;     ///< The last probe did well.
    milliseconds pause{0};
    std::string reason = "it was not asked yet";  ///< Why it is out.
};

UpstreamPool::UpstreamPool(net::EventLoop& loop, net::HttpClient& client, PoolSet& pools,
                           UpstreamPoolOptions options, std::function<void()> on_ready)
    : loop_(loop),
      client_(client),
      registry_(pools.registry()),
      options_(std::move(options)),
      on_ready_(std::move(on_ready)),
      index_(pools.next_index()) {
    // Nothing but the number of requests is known of them.
    registry_.set_policy(index_, routing::Policy::kLeastLoaded);
    port::ServerInfo info;
    info.engine = options_.engine;
    info.model = options_.upstream_model.empty() ? options_.model : options_.upstream_model;
    for (const std::string& url : options_.urls) {
        const auto index = registry_.add({.pool = index_, .capacity = options_.max_concurrency});
        SLUICE_ASSERT(index.has_value());  // The configuration's limits are below the registry's.
        auto address = std::make_unique<Address>();
        address->url = url;
        const auto parsed = net::parse_url(url);
        address->health = parsed ? fmt::format("{}://{}/health", parsed->secure ? "https" : "http",
                                               parsed->authority)
                                 : url;
        address->index = *index;
        address->info = std::make_shared<const port::ServerInfo>(info);
        addresses_.push_back(std::move(address));
    }
}

UpstreamPool::~UpstreamPool() = default;

dispatch::Rules UpstreamPool::rules() const { return dispatch::rules_of(engine()); }

void UpstreamPool::start() {
    for (const auto& address : addresses_) probe(*address);
}

UpstreamPool::Address& UpstreamPool::at(routing::WorkerIndex worker) {
    return *addresses_[worker - addresses_.front()->index];
}

std::unique_ptr<LegRunner> UpstreamPool::make_runner(const InboundRequest& request,
                                                     std::shared_ptr<const PreparedRequest>,
                                                     LegObserver& observer) {
    return std::make_unique<UpstreamRunner>(loop_, client_, options_, request, observer);
}

std::expected<Assignment, routing::NoPick> UpstreamPool::pick(LegDemand demand,
                                                              const routing::Tried& tried) {
    demand.pool = index_;
    demand.phase = routing::LegPhase::kFull;
    auto pick = registry_.pick(demand, tried, steady_clock::now());
    if (!pick) return std::unexpected(pick.error());
    const Address& address = at(pick->lease.worker());
    return Assignment{.pool = this,
                      .url = address.url,
                      .worker = address.url,
                      .info = address.info,
                      .lease = std::move(pick->lease),
                      .work = pick->work};
}

std::optional<std::size_t> UpstreamPool::capacity() const {
    if (options_.max_concurrency == 0) return std::nullopt;
    return addresses_.size() * options_.max_concurrency;
}

std::vector<WorkerView> UpstreamPool::workers() const {
    std::vector<WorkerView> views;
    for (const auto& address : addresses_) {
        const bool ready = registry_.takes_requests(address->index, steady_clock::now());
        views.push_back({.name = fmt::format("{}-{}", options_.name, views.size()),
                         .url = address->url,
                         .state = ready ? "ready" : "lost",
                         .report = {},
                         .report_age = {},
                         .versions = address->info,
                         .reason = ready ? "" : address->reason});
    }
    return views;
}

// ---- Results --------------------------------------------------------------------------------------

void UpstreamPool::report_success(routing::WorkerIndex worker) {
    const auto now = steady_clock::now();
    registry_.on_result(worker, routing::LegResult::kSuccess, now, now);
}

void UpstreamPool::report_fault(routing::WorkerIndex worker, LegFault fault, dispatch::Time began) {
    Address& address = at(worker);
    const auto now = steady_clock::now();
    // How long such an engine may be silent is a guess: it takes several to call it dead.
    const bool stalled = fault == LegFault::kStalled;
    registry_.on_result(worker, stalled ? routing::LegResult::kFailed : leg_result(fault), began,
                        now);
    if (registry_.health(worker).breaker(now) == routing::Health::Breaker::kOpen)
        return on_tripped(address, fault);
    // It may be gone altogether: that is known soon.
    if (fault == LegFault::kUnavailable) probe(address);
}

void UpstreamPool::on_tripped(Address& address, LegFault fault) {
    const std::string_view reason = fault == LegFault::kMisconfigured
                                        ? "it refuses what is right"
                                        : "it failed several requests in a row";
    if (address.reason != reason)
        log::warn("upstream {} of pool {} is out: {}", address.url, options_.name, reason);
    address.reason = reason;
    // Who waits hears of it once it may be tried again.
    const auto rest = registry_.health(address.index).open_until() - steady_clock::now();
    address.next_trial = loop_.call_after(rest, [this] { on_ready_(); });
}

void UpstreamPool::take_out(Address& address, std::string_view reason) {
    // Also one that never was in, once for each reason: a wrong certificate, say, is to be seen.
    if (registry_.ready(address.index) || address.reason != reason)
        log::warn("upstream {} of pool {} is out: {}", address.url, options_.name, reason);
    address.reason = reason;
    registry_.set_ready(address.index, false, steady_clock::now());
}

// ---- Probes ---------------------------------------------------------------------------------------

void UpstreamPool::probe(Address& address) {
    net::HttpHeaders headers;
    if (!options_.api_key.empty()) headers.add("Authorization", "Bearer " + options_.api_key);
    auto status = std::make_shared<int>(0);
    address.probe = client_.start(
        {.url = address.asks_health ? address.health : address.url + "/models",
         .headers = std::move(headers),
         .connect_time = kProbeTime,
         .head_time = kProbeTime,
         .stall_time = kProbeTime},
        {.on_head = [status](int code, const net::HttpHeaders&) { *status = code; },
         .on_data = {},
         .on_done = [this, &address, status] { on_probe(address, *status, {}); },
         .on_error = [this,
                      &address](const Error& error) { on_probe(address, 0, error.message()); }});
}

void UpstreamPool::probe_later(Address& address, milliseconds pause) {
    address.next_probe = loop_.call_after(pause, [this, &address] { probe(address); });
}

void UpstreamPool::on_probe(Address& address, int status, const std::string& broken) {
    const bool unknown = status == 404 || status == 405;
    if (unknown && !address.asks_health) {
        address.asks_health = true;
        return probe_later(address, milliseconds(0));
    }
    address.answered = status >= 200 && status < 300;
    if (!address.answered) {
        address.asks_health = false;
        address.pause = std::clamp(address.pause * 2, kGonePause, kLongestGonePause);
        take_out(address, status == 0     ? broken
                          : status == 401 ? "it does not take our key"
                                          : fmt::format("its health is status {}", status));
        return probe_later(address, address.pause);
    }
    address.pause = milliseconds(0);
    probe_later(address, kReadyPause);
    become_ready(address);
}

void UpstreamPool::become_ready(Address& address) {
    if (registry_.ready(address.index)) return;
    registry_.set_ready(address.index, true, steady_clock::now());
    log::info("upstream {} of pool {} is ready", address.url, options_.name);
    on_ready_();
}

}  // namespace sluice::gateway
