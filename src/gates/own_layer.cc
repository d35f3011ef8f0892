#include "gates/own_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"

namespace sluice::gates {
namespace {

constexpr auto kTraffic = LayerKind::kTraffic;
constexpr auto kCache = LayerKind::kCache;

constexpr auto kInterfaces = std::to_array<Interface>({
    {kTraffic, "tls", Decision::kKeep,
     "ending TLS in front is fine while the way from there is guarded; clients_overheard asks"},
    {kTraffic, "load_balancing", Decision::kAdapt,
     "between gateways keep it; behind one, give each worker's own address in urls: load and "
     "health of workers behind one address can't be told apart"},
    {kTraffic, "keys", Decision::kAdapt,
     "pass Authorization on, a key for each tenant: limits, fairness and cache salts need to know "
     "who asks"},
    {kTraffic, "rate_limits", Decision::kAdapt,
     "keep what guards against floods of connections; limits of tokens belong in [[tenant]], "
     "because only the gateway knows how many there were"},
    {kTraffic, "retries", Decision::kReplace,
     "turn them off: a request is tried elsewhere before its first byte, and what is sent again "
     "after it repeats tokens and multiplies load in an outage"},
    {kTraffic, "weights", Decision::kReplace,
     "move them to [plan]: a rollback holds only if there is no second place that sends traffic"},
    {kTraffic, "mirroring", Decision::kReplace,
     "move it to [[plan.shadow]]: copies made in front count as requests, are billed and limited, "
     "and are compared with nothing"},
    {kTraffic, "affinity", Decision::kAdapt,
     "pass x-sluice-conversation, prompt_cache_key or user: splits and shadows keep a conversation "
     "together by it"},
    {kTraffic, "health_checks", Decision::kAdapt,
     "ask /ready, not /health, which only says that the process lives; /ready is 503 while no "
     "worker can answer"},
    {kTraffic, "timeouts", Decision::kAdapt, "an idle timeout must outlast the longest silence"},
    {kTraffic, "buffering", Decision::kReplace,
     "turn it off for text/event-stream: a buffered stream has no time to first token"},
    {kTraffic, "request_ids", Decision::kKeep,
     "x-request-id is taken, passed on, and found again by `sluice ctl where`"},
    {kTraffic, "tracing", Decision::kKeep,
     "traceparent is passed on with the gateway's own span between"},
    {kTraffic, "metrics", Decision::kAdapt,
     "scrape /metrics of the admin address and of workers too: only they know tokens and queues"},
    {kCache, "prefix_cache", Decision::kKeep,
     "the engine's own; a pass-through pool gets the client's fields as they are, its cache salt "
     "too"},
    {kCache, "block_store", Decision::kKeep,
     "stays between the engines and itself: pass-through pools leave keys and values to their "
     "engine"},
    {kCache, "block_keys", Decision::kAdapt,
     "a key must name weights, numerics, data type, layout and tenant: two builds that share "
     "entries answer wrongly, and a candidate must not read what stable wrote"},
    {kCache, "checksums", Decision::kAdapt,
     "verify bytes before they are used: that a transfer succeeded is no proof of what arrived"},
    {kCache, "eviction", Decision::kKeep,
     "no request waits for a cache here: a miss is a recompute"},
    {kCache, "events", Decision::kKeep, "nothing here reads them: workers are chosen by load"},
    {kCache, "cache_aware_routing", Decision::kAdapt,
     "keep it as the pool's one address, with max_concurrency of all behind it; or replace it by "
     "urls of the workers, and lose its hits"},
    {kCache, "transfer", Decision::kKeep,
     "prefill hands over to decode behind the pool's address; the pool is their router's"},
    {kCache, "response_cache", Decision::kReplace,
     "turn it off for candidates: what answers must be the build that is tried; only requests with "
     "a seed or temperature 0 repeat at all"},
});

/// The longest time without a byte that a client may see.
std::chrono::milliseconds longest_silence(const ServiceConfig& config) {
    std::chrono::milliseconds longest = *config.gateway.headers_after;
    for (const PoolConfig& pool : config.pools) {
        if (pool.is_native()) continue;
        longest =
            std::max({longest, *pool.upstream.first_token_timeout, *pool.upstream.stall_timeout});
    }
    // An answer in one piece sends nothing while it waits its turn.
    return std::max(longest, *config.gateway.queue_wait);
}

}  // namespace

std::string_view to_string(LayerKind kind) {
    return kind == LayerKind::kTraffic ? "traffic" : "cache";
}

std::optional<LayerKind> parse_layer_kind(std::string_view name) {
    for (const LayerKind kind : {LayerKind::kTraffic, LayerKind::kCache})
        if (to_string(kind) == name) return kind;
    return std::nullopt;
}

std::string_view to_string(Decision decision) {
    constexpr auto kNames = std::to_array<std::string_view>({"keep", "adapt", "replace"});
    return kNames[static_cast<std::size_t>(decision)];
}

std::span<const Interface> interfaces() { return kInterfaces; }

const Interface* find_interface(LayerKind kind, std::string_view name) {
    const auto* const found = std::ranges::find_if(kInterfaces, [&](const Interface& interface) {
        return interface.kind == kind && interface.name == name;
    });
    return found == kInterfaces.end() ? nullptr : found;
}

std::vector<std::string_view> interface_names(LayerKind kind) {
    std::vector<std::string_view> names;
    for (const Interface& interface : kInterfaces)
        if (interface.kind == kind) names.push_back(interface.name);
    return names;
}

std::string advice_for(const Interface& interface, const ServiceConfig& config) {
    if (interface.name != "timeouts") return std::string(interface.reason);
    return fmt::format("{}, which is {} here", interface.reason,
                       format_duration(longest_silence(config)));
}

}  // namespace sluice::gates
