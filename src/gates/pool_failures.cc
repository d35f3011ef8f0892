#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "gates/failure_mode.h"
#include "net/url.h"

namespace sluice::gates {
namespace {

constexpr std::string_view kBuiltIn = "krill";

/// A worker per process or address.
struct Workers {
    std::int64_t count = 0;
    std::string text;  ///< "workers = 2", "2 urls"
    const std::string* place = nullptr;
};

Workers workers_of(const PoolConfig& pool) {
    if (pool.is_native()) {
        const NativeConfig& native = pool.native;
        const auto elsewhere = static_cast<std::int64_t>(native.urls->size());
        if (elsewhere > 0)
            return {elsewhere, fmt::format("{} url{}", elsewhere, elsewhere == 1 ? "" : "s"),
                    &native.urls.place};
        if (!native.is_split())
            return {*native.workers, fmt::format("workers = {}", *native.workers),
                    &native.workers.place};
        // Any of them does the other kind's work when that is gone.
        return {native.processes(),
                fmt::format("prefill = {}, decode = {}", *native.prefill, *native.decode),
                &native.prefill.place};
    }
    const auto& urls = pool.upstream.urls;
    const auto count = static_cast<std::int64_t>(urls->size());
    return {count, fmt::format("{} url{}", count, count == 1 ? "" : "s"), &urls.place};
}

FailureMode worker_crashes(const PoolConfig& pool) {
    FailureMode mode{.failure = Failure::kWorkerCrashes, .subject = *pool.name};
    mode.place = *workers_of(pool).place;
    if (pool.is_native()) {
        mode.caught_by = "the supervisor of `sluice up`, which starts it again";
        mode.rollback = "by itself: streams go on from their journal, bit for bit";
    } else {
        mode.caught_by = "the broken connection, and failed probes of the address";
        mode.rollback =
            "by itself before a client's first byte, at another address; a stream that has begun "
            "ends with an error event, and the client asks again";
    }
    return mode;
}

FailureMode no_spare_worker(const PoolConfig& pool) {
    const Workers workers = workers_of(pool);
    FailureMode mode{.failure = Failure::kNoSpareWorker, .subject = *pool.name};
    mode.place = *workers.place;
    mode.rollback = "by itself: the others answer; requests beyond their room wait";
    if (workers.count > 1) {
        mode.caught_by = workers.text;
    } else {
        mode.advice = pool.is_native() ? "set workers = 2 or more: with one, everybody waits for it"
                                       : "name a second address in urls: with one, requests wait "
                                         "until it is back, and fail at their deadline";
    }
    return mode;
}

FailureMode worker_stalls(const PoolConfig& pool) {
    FailureMode mode{.failure = Failure::kWorkerStalls, .subject = *pool.name};
    if (pool.is_native()) {
        mode.caught_by = "heartbeats of computed tokens, which must grow";
        mode.rollback = "by itself: another worker goes on where it stopped";
        return mode;
    }
    const UpstreamConfig& upstream = pool.upstream;
    mode.place = upstream.stall_timeout.place;
    mode.caught_by = fmt::format("first_token_timeout = {}, stall_timeout = {}",
                                 format_duration(*upstream.first_token_timeout),
                                 format_duration(*upstream.stall_timeout));
    mode.rollback =
        "by itself before a client's first byte, at another address; afterwards an error event";
    return mode;
}

bool has_guard(const ServiceConfig& config, const PoolConfig& pool, std::string_view metric) {
    return std::ranges::any_of(config.plan.guards, [&](const GuardConfig& guard) {
        return *guard.pool == *pool.name && *guard.metric == metric;
    });
}

FailureMode wrong_model(const ServiceConfig& config, const PoolConfig& pool) {
    FailureMode mode{.failure = Failure::kWrongModel, .subject = *pool.name};
    mode.place = pool.name.place;
    const PoolRole role = role_of(config, pool);
    if (!role.answers && role.shadow != nullptr && has_guard(config, pool, "differs_share")) {
        mode.caught_by = "[[plan.shadow]] and the guard on differs_share";
        mode.rollback = "by itself: its conversations go back to the stable pool";
        return mode;
    }
    mode.advice =
        role.answers ? "records name the versions, but nothing compares them: run `sluice gate "
                       "baseline compare` with every deployment, and say so"
                     : "add a [[plan.shadow]] and a [[plan.guard]] with metric = \"differs_share\"";
    return mode;
}

FailureMode model_file_missing(const PoolConfig& pool, const ServiceFacts& facts) {
    FailureMode mode{.failure = Failure::kModelFileMissing, .subject = *pool.name};
    mode.place = pool.native.model.place;
    mode.rollback = "what runs keeps its file open; a start without it fails and says so";
    const auto broken = facts.broken_files.find(*pool.native.model);
    if (*pool.native.model == kBuiltIn) {
        mode.caught_by = "the program, which has Krill built in or beside it";
    } else if (broken == facts.broken_files.end()) {
        mode.caught_by = "this gate: the file can be read";
    } else {
        mode.present = true;
        mode.advice = fmt::format("{}: {}", broken->first, broken->second);
    }
    return mode;
}

FailureMode poison_request(const PoolConfig& pool) {
    FailureMode mode{.failure = Failure::kPoisonRequest, .subject = *pool.name};
    mode.caught_by =
        pool.is_native()
            ? "the budget of a request: two workers lost without a new token between end it"
            : "the budget of a request: no address is tried twice, and none after its first byte";
    mode.rollback = "by itself: the request ends with an error, the rest goes on";
    return mode;
}

FailureMode overload(const ServiceConfig& config, const PoolConfig& pool) {
    FailureMode mode{.failure = Failure::kOverload, .subject = *pool.name};
    const auto& wait = config.gateway.queue_wait;
    mode.rollback = "by itself: 429 with Retry-After for what would wait too long";
    if (pool.is_native() || *pool.upstream.max_concurrency > 0) {
        mode.place = wait.place;
        mode.caught_by = fmt::format("the queue: queue_wait = {}, queue_requests = {}",
                                     format_duration(*wait), *config.gateway.queue_requests);
        return mode;
    }
    mode.place = pool.upstream.max_concurrency.place;
    mode.advice =
        "set max_concurrency: without it everything is passed on at once, and waits in the pool, "
        "unseen";
    return mode;
}

FailureMode upstream_key_missing(const PoolConfig& pool, const ServiceFacts& facts) {
    const auto& variable = pool.upstream.api_key_env;
    FailureMode mode{.failure = Failure::kUpstreamKeyMissing, .subject = *pool.name};
    mode.place = variable.place;
    mode.rollback = "a start without it fails and names the variable";
    if (facts.missing_variables.contains(*variable)) {
        mode.present = true;
        mode.advice = fmt::format("${} is not set here", *variable);
    } else {
        mode.caught_by = fmt::format("this gate: ${} is set", *variable);
    }
    return mode;
}

bool leaves_the_machine(const std::string& text) {
    const auto url = net::parse_url(text);
    return url && !is_loopback(url->host);
}

FailureMode upstream_overheard(const ServiceConfig& config, const PoolConfig& pool,
                               const ServiceFacts& facts) {
    const std::vector<std::string>& urls = *pool.upstream.urls;
    FailureMode mode{.failure = Failure::kUpstreamOverheard, .subject = *pool.name};
    mode.place = pool.upstream.urls.place;
    mode.rollback = "give the pool another key; what was read stays read";
    if (std::ranges::none_of(urls, leaves_the_machine)) {
        mode.caught_by = "its addresses, which don't leave this machine";
        return mode;
    }
    const auto in_clear = std::ranges::find_if(urls, [](const std::string& url) {
        return leaves_the_machine(url) && !url.starts_with("https://");
    });
    const std::string bundle = config.gateway.ca_bundle->value_or("");
    const auto broken = facts.broken_files.find(bundle);
    if (in_clear != urls.end()) {
        mode.advice =
            fmt::format("{} is plain HTTP: use https, or say what guards that network", *in_clear);
    } else if (broken != facts.broken_files.end()) {
        mode.present = true;
        mode.place = config.gateway.ca_bundle.place;
        mode.advice = fmt::format("{}: {}", broken->first, broken->second);
    } else {
        mode.caught_by = fmt::format("https, verified by {}",
                                     bundle.empty() ? "the system's authorities" : bundle);
    }
    return mode;
}

FailureMode tenants_share_cache(const ServiceConfig& config, const PoolConfig& pool,
                                const ServiceFacts& facts) {
    FailureMode mode{.failure = Failure::kTenantsShareCache, .subject = *pool.name};
    mode.place = pool.engine.place;
    mode.rollback = "restart the pool with its prefix cache off";
    if (pool.is_native()) {
        mode.caught_by = "the salt of every block's key, which names its tenant";
    } else if (std::max(config.tenants.size(), facts.key_tenants) <= 1) {
        mode.caught_by = "there being one tenant at most";
    } else if (pool.shares_cache()) {
        mode.place = pool.upstream.shared_cache.place;
        mode.advice =
            "the configuration lets tenants share it: turn the engine's prefix cache off, or "
            "accept it";
    } else if (pool.serves_one_tenant()) {
        mode.present = true;
        mode.advice = fmt::format(
            "the service won't start: this engine can't keep tenants apart; use vllm or sglang, or "
            "write shared_cache = \"{}\"",
            kTenantsMayShare);
    } else {
        mode.caught_by = "the tenant's salt in each request's cache_salt";
    }
    return mode;
}

FailureMode price_missing(const PoolConfig& pool) {
    FailureMode mode{.failure = Failure::kPriceMissing, .subject = *pool.name};
    mode.place = pool.price_hour.place;
    mode.rollback = "set the price; costs are counted from the next start";
    if (*pool.price_hour > 0.0) {
        mode.caught_by = fmt::format("price.hour = {}", *pool.price_hour);
    } else {
        mode.advice = "set price.hour: without it the card shows no cost per success";
    }
    return mode;
}

}  // namespace

void add_pool_failures(const ServiceConfig& config, const PoolConfig& pool,
                       const ServiceFacts& facts, std::vector<FailureMode>& modes) {
    modes.push_back(worker_crashes(pool));
    if (role_of(config, pool).answers) modes.push_back(no_spare_worker(pool));
    modes.push_back(worker_stalls(pool));
    modes.push_back(wrong_model(config, pool));
    modes.push_back(poison_request(pool));
    modes.push_back(overload(config, pool));
    modes.push_back(tenants_share_cache(config, pool, facts));
    modes.push_back(price_missing(pool));
    if (pool.is_native()) return modes.push_back(model_file_missing(pool, facts));
    modes.push_back(upstream_overheard(config, pool, facts));
    if (!pool.upstream.api_key_env->empty()) modes.push_back(upstream_key_missing(pool, facts));
}

}  // namespace sluice::gates
