#include "worker/status_handlers.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "worker/answers.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

port::RankLoad load_of(const engine::EngineStats& stats) {
    return {
        .running = static_cast<std::uint32_t>(stats.running),
        .waiting = static_cast<std::uint32_t>(stats.waiting),
        .kv_used_share = static_cast<float>(stats.blocks_held) / static_cast<float>(stats.blocks),
        .computed_tokens = stats.computed_tokens};
}

/// Of a prefix of 1,024 tokens, as LoadReport has it.
std::uint32_t token_time(const kv::TierSpeed& speed, const engine::Engine& engine) {
    constexpr std::size_t kTokens = 1'024;
    constexpr std::size_t kBlocks = kTokens / engine::Engine::kBlockTokens;
    const auto time = speed.predict(kBlocks * block_bytes(engine)).count() / kTokens;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(time, 1, UINT32_MAX));
}

void add_load_times(port::LoadReport& report, Service& service) {
    if (service.ranks.empty()) return;
    const engine::Engine& engine = *service.ranks.front()->engine;
    const KvTiers& tiers = service.kv.cache.tiers();
    report.kv_peer_token_ns = token_time(tiers.peers, engine);
    for (const auto& tier : tiers.all)
        if (tier->name == "node" && tier->in_use)
            report.kv_node_token_ns = token_time(tier->speed, engine);
}

port::LoadReport load_of(Service& service, port::EngineState state) {
    port::LoadReport report{.state = state, .pid = static_cast<std::uint32_t>(::getpid())};
    report.kv_epoch = service.kv.cache.nodes_epoch();
    add_load_times(report, service);
    std::vector<port::RankLoad> ranks;
    for (const auto& rank : service.ranks) {
        const port::RankLoad load = load_of(rank->engine->stats());
        report.running += load.running;
        report.waiting += load.waiting;
        report.computed_tokens += load.computed_tokens;
        report.kv_used_share += load.kv_used_share / static_cast<float>(service.ranks.size());
        ranks.push_back(load);
    }
    if (ranks.size() > 1) report.ranks = std::move(ranks);
    return report;
}

}  // namespace

net::HttpResponse handle_health(Service& /*service*/, const net::HttpRequest& /*request*/) {
    return net::HttpResponse::json(200, R"({"status":"ok"})");
}

net::HttpResponse handle_ready(Service& service, const net::HttpRequest& /*request*/) {
    const port::EngineState state = service.state_now();
    const bool ready = state == port::EngineState::kReady;
    net::HttpResponse response =
        net::HttpResponse::json(ready ? 200 : 503, port::to_json(load_of(service, state)));
    if (!ready) response.headers.add("Retry-After", "1");
    return response;
}

net::HttpResponse handle_server_info(Service& service, const net::HttpRequest& /*request*/) {
    if (service.ranks.empty()) {
        return error_answer(503, port::kNotReady, "the model is still loading");
    }
    return net::HttpResponse::json(
        200, port::to_json(
                 describe(*service.ranks.front()->engine, service.about, service.ranks.size())));
}

net::HttpResponse handle_metrics(Service& service, const net::HttpRequest& /*request*/) {
    std::vector<const engine::Engine*> engines;
    for (const auto& rank : service.ranks) engines.push_back(rank->engine.get());
    net::HttpResponse response = net::HttpResponse::text(
        200, service.metrics.text(engines, service.kv.holds.size(), service.kv.cache));
    response.headers.set("Content-Type", std::string(metrics::Registry::kContentType));
    return response;
}

}  // namespace sluice::worker
