#include "base/service_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/config.h"
#include "base/config_checks.h"
#include "base/discovery_limits.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/retention.h"
#include "base/service_settings.h"
#include "base/setting_reader.h"

namespace sluice {
namespace {

using config::check_url;
using config::Document;
using config::is_name;
using config::Range;
using config::Table;
using settings::is_upstream;
using settings::kEngines;

void check_engine(Table& table, const std::string& engine) {
    if (std::ranges::find(kEngines, engine) != kEngines.end()) return;
    table.reject("engine",
                 fmt::format("is not a kind of engine{}", did_you_mean(engine, kEngines)));
}

/// `url` is one of `urls`, for who has only one.
void read_url(Table& table, UpstreamConfig& upstream) {
    const std::optional<std::string> url = table.text("url");
    if (!url) return;
    if (table.has("urls")) return table.reject("url", "and urls are both there; keep one");
    upstream.urls = {{*url}, table.place("url")};
}

/// "[PHASE=]URL", each; as --worker has them, whose phases are discovery's to know.
void check_workers(Table& table, const std::vector<std::string>& workers) {
    constexpr auto kPhases = std::to_array<std::string_view>({"full", "prefill", "decode"});
    if (workers.size() > static_cast<std::size_t>(limits::kConfigWorkers))
        table.reject("urls", fmt::format("has more than {} addresses", limits::kConfigWorkers));
    for (const std::string_view worker : workers) {
        const std::size_t equals = worker.find('=');
        const bool named = equals != std::string_view::npos;
        const std::string url(worker.substr(named ? equals + 1 : 0));
        if (named && std::ranges::find(kPhases, worker.substr(0, equals)) == kPhases.end())
            table.reject("urls", "names a phase that is not full, prefill or decode");
        check_url(table, "urls", url);
        const std::size_t host = url.find("://");
        if (host != std::string::npos && url.find('/', host + 3) != std::string::npos)
            table.reject("urls", "has a path; an engine of our own needs none");
    }
}

void check_native(Table& table, const NativeConfig& native) {
    check_workers(table, *native.urls);
    if (!native.urls->empty()) {
        table.forbid("workers", "can't stand beside urls");
        if (native.is_split()) table.reject("prefill", "can't stand beside urls");
    }
    if ((*native.prefill > 0) != (*native.decode > 0)) {
        table.reject(table.has("prefill") ? "prefill" : "decode",
                     "needs both prefill and decode, at least one of each");
    }
    if (native.is_split() && native.urls->empty())
        table.forbid("workers", "can't stand beside prefill and decode");
    const std::chrono::milliseconds time = *native.step_time;
    if (time.count() < 1 || time > kStepTimeMost)
        table.reject("step_time", fmt::format("must be from 1ms to {}ms", kStepTimeMost.count()));
    if (*native.stall_timeout < kStallTimeLeast)
        table.reject("stall_timeout",
                     fmt::format("must be at least {}ms", kStallTimeLeast.count()));
}

void check_upstream(Table& table, UpstreamConfig& upstream) {
    read_url(table, upstream);
    const std::string_view key = table.has("url") ? "url" : "urls";
    if (upstream.urls->empty()) table.reject("name", "has no url");
    if (upstream.urls->size() > static_cast<std::size_t>(limits::kConfigWorkers))
        table.reject(key, fmt::format("has more than {} addresses", limits::kConfigWorkers));
    for (const std::string& url : *upstream.urls) check_url(table, key, url);
    if (upstream.connect_timeout->count() == 0 || upstream.first_token_timeout->count() == 0 ||
        upstream.stall_timeout->count() == 0) {
        table.reject("name", "has a timeout of nothing");
    }
    if (*upstream.usage != "always" && *upstream.usage != "as_asked")
        table.reject("usage", "must be \"always\" or \"as_asked\"");
}

/// With more than one tenant a pool keeps them apart, or says in words that it does not.
void check_isolation(Table& table, const PoolConfig& pool, std::size_t tenants) {
    if (pool.shares_cache() && **pool.upstream.shared_cache != kTenantsMayShare) {
        table.reject("shared_cache",
                     fmt::format("must be left out, or say \"{}\"", kTenantsMayShare));
    } else if (tenants > 1 && pool.serves_one_tenant()) {
        table.reject("engine",
                     fmt::format("has no way to keep the cached prefixes of {} tenants apart, as "
                                 "vllm and sglang have; or write shared_cache = \"{}\"",
                                 tenants, kTenantsMayShare));
    }
}

PoolConfig read_pool(Table table, std::size_t tenants) {
    PoolConfig pool;
    settings::visit_pool(pool, SettingReader(table));
    check_engine(table, *pool.engine);
    if (!is_name(*pool.name)) {
        table.reject("name", "must be at most 64 of a-z, 0-9, '-' and '_'");
    }
    if (is_upstream(*pool.engine)) {
        check_upstream(table, pool.upstream);
    } else {
        check_native(table, pool.native);
    }
    check_isolation(table, pool, tenants);
    table.finish();
    return pool;
}

std::vector<PoolConfig> read_pools(Table& root, std::size_t tenants) {
    std::vector<PoolConfig> pools;
    std::set<std::string> names;
    for (Table& table : root.tables("pool")) {
        if (pools.size() == limits::kConfigPools) {
            table.reject("name", fmt::format("is one pool more than {}", limits::kConfigPools));
            break;
        }
        PoolConfig pool = read_pool(table, tenants);
        if (!names.insert(*pool.name).second) table.reject("name", "is used by an earlier pool");
        pools.push_back(std::move(pool));
    }
    if (pools.empty()) settings::visit_pool(pools.emplace_back(), SettingReader());
    return pools;
}

GatewayConfig read_gateway(Table& root) {
    GatewayConfig gateway;
    std::optional<Table> table = root.table("gateway");
    settings::visit_gateway(gateway, table ? SettingReader(*table) : SettingReader());
    if (!table) return gateway;
    if (gateway.listen->port != 0 && *gateway.listen == *gateway.admin) {
        table->reject(table->has("admin") ? "admin" : "listen", "is the other address's port too");
    }
    if (*gateway.open && **gateway.open != kOpenToAnyone) {
        table->reject("open", fmt::format("must be left out, or say \"{}\"", kOpenToAnyone));
    }
    if (gateway.tls_certificate->has_value() != gateway.tls_key->has_value()) {
        table->reject(table->has("tls_key") ? "tls_key" : "tls_certificate",
                      "needs both tls_certificate and tls_key");
    }
    if (*gateway.tls_admin && !*gateway.tls_key) {
        table->reject("tls_admin", "needs tls_certificate and tls_key");
    }
    table->finish();
    return gateway;
}

TenantConfig read_tenant(Table table) {
    constexpr auto kShares = std::to_array<std::string_view>({"tenant", "user", "session"});
    TenantConfig tenant;
    settings::visit_tenant(tenant, SettingReader(table));
    if (!is_name(*tenant.name)) {
        table.reject("name", "must be 1 to 64 of a-z, 0-9, '-' and '_'");
    }
    if (*tenant.weight <= 0) table.reject("weight", "must be above 0");
    if (std::ranges::find(kShares, *tenant.share) == kShares.end()) {
        table.reject("share", "must be \"tenant\", \"user\" or \"session\"");
    }
    if (!retention_from(*tenant.retention))
        table.reject("class", "must be \"agent\", \"chat\" or \"none\"");
    table.finish();
    return tenant;
}

std::vector<TenantConfig> read_tenants(Table& root) {
    std::vector<TenantConfig> tenants;
    std::set<std::string> names;
    for (Table& table : root.tables("tenant")) {
        if (tenants.size() == limits::kTenants) {
            table.reject("name", fmt::format("is one tenant more than {}", limits::kTenants));
            break;
        }
        TenantConfig tenant = read_tenant(table);
        if (!names.insert(*tenant.name).second)
            table.reject("name", "is used by an earlier tenant");
        tenants.push_back(std::move(tenant));
    }
    return tenants;
}

PlanConfig read_plan(Table& root, const std::vector<PoolConfig>& pools) {
    std::optional<Table> table = root.table("plan");
    PlanConfig plan = read_plan_config(table);
    std::vector<std::string_view> names;
    names.reserve(pools.size());
    for (const PoolConfig& pool : pools) names.push_back(*pool.name);

    if (plan.stable->empty() && pools.size() == 1) plan.stable.value = *pools.front().name;
    const bool known = std::find(names.begin(), names.end(), *plan.stable) != names.end();
    if (!known && plan.stable->empty()) {
        Table& place = table ? *table : root;
        place.reject(table ? "stable" : "plan.stable", "must name the pool that answers");
    } else if (!known) {
        table->reject("stable", fmt::format("names no pool{}", did_you_mean(*plan.stable, names)));
    }
    return plan;
}

DiscoveryConfig read_discovery(Table& root) {
    DiscoveryConfig discovery;
    std::optional<Table> table = root.table("discovery");
    settings::visit_discovery(discovery, table ? SettingReader(*table) : SettingReader());
    if (!table) return discovery;
    for (const std::string& url : *discovery.etcd) check_url(*table, "etcd", url);
    if (discovery.etcd->size() > limits::kEtcdEndpoints)
        table->reject("etcd", fmt::format("has more than {} addresses", limits::kEtcdEndpoints));
    if (discovery.prefix->empty() || discovery.prefix->size() > limits::kEtcdPrefixBytes)
        table->reject("prefix", fmt::format("must have 1 to {} bytes", limits::kEtcdPrefixBytes));
    table->finish();
    return discovery;
}

RecordConfig read_record(Table& root) {
    RecordConfig record;
    std::optional<Table> table = root.table("record");
    settings::visit_record(record, table ? SettingReader(*table) : SettingReader());
    if (table) table->finish();
    return record;
}

std::expected<ServiceConfig, std::vector<Error>> read(const Document& document) {
    Table root = document.root();
    ServiceConfig config;
    config.gateway = read_gateway(root);
    config.tenants = read_tenants(root);
    config.pools = read_pools(root, config.tenants.size());
    config.plan = read_plan(root, config.pools);
    config.record = read_record(root);
    config.discovery = read_discovery(root);
    config.kv = read_kv_config(root.table("kv"));
    root.finish();
    std::vector<Error> errors = document.errors();
    if (!errors.empty()) return std::unexpected(std::move(errors));
    return config;
}

}  // namespace

bool takes_cache_salt(std::string_view engine) { return engine == "vllm" || engine == "sglang"; }

ServiceConfig default_service_config() { return *parse_service_config("", "default"); }

std::expected<ServiceConfig, std::vector<Error>> parse_service_config(std::string_view text,
                                                                      std::string name) {
    const Result<Document> document = Document::parse(text, std::move(name));
    if (!document) return std::unexpected(std::vector{document.error()});
    return read(*document);
}

std::expected<ServiceConfig, std::vector<Error>> load_service_config(const std::string& path) {
    const Result<Document> document = Document::load(path);
    if (!document) return std::unexpected(std::vector{document.error()});
    return read(*document);
}

}  // namespace sluice
