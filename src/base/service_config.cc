#include "base/service_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <type_traits>
#include <utility>

#include "base/config.h"
#include "base/limits.h"
#include "base/nearest.h"

namespace sluice {
namespace {

using config::Document;
using config::Range;
using config::Table;

constexpr std::string_view kNotYet = "is not supported yet";

constexpr auto kEngines =
    std::to_array<std::string_view>({"native", "openai", "vllm", "sglang", "llama.cpp"});

/// All but our own are given the client's request as it is.
bool is_upstream(std::string_view engine) {
    return engine != "native" && std::ranges::find(kEngines, engine) != kEngines.end();
}

// ---- The one table of settings: key, field, default, meaning --------------------------------------

template <class Gateway, class Visitor>
void visit_gateway(Gateway& gateway, Visitor&& visit) {
    visit("listen", gateway.listen, HostPort{"127.0.0.1", 8080},
          "where clients connect; port 0 takes a free one");
    visit("admin", gateway.admin, HostPort{"127.0.0.1", 8081}, "metrics and control");
    visit("keys", gateway.keys, std::nullopt,
          "file of API keys; \"\": keys.json of the state folder");
    visit("open", gateway.open, std::nullopt,
          "\"anyone may use this\": without a key, from anywhere");
    visit("tls_certificate", gateway.tls_certificate, std::nullopt, "PEM file; \"\": plain HTTP");
    visit("tls_key", gateway.tls_key, std::nullopt, "PEM file of the certificate's private key");
    visit("tls_admin", gateway.tls_admin, false, "whether the admin address speaks TLS, too");
    visit("ca_bundle", gateway.ca_bundle, std::nullopt,
          "PEM file of who vouches for https pools; \"\": the system's");
    visit("queue_requests", gateway.queue_requests, limits::kQueuedRequests,
          "how many requests may wait", Range{1, limits::kQueuedRequests});
    visit("queue_wait", gateway.queue_wait, std::chrono::seconds(limits::kQueueWaitSeconds),
          "requests that would wait longer are refused at once");
    visit("headers_after", gateway.headers_after, std::chrono::seconds(2),
          "a stream that waits longer gets its head, then comments");
}

template <class Tenant, class Visitor>
void visit_tenant(Tenant& tenant, Visitor&& visit) {
    constexpr Range kRate{0, 1'000'000'000'000};
    visit("name", tenant.name, "", "as `sluice ctl keys add --tenant` has it");
    visit("requests_per_minute", tenant.requests_per_minute, 0, "0: no limit", kRate);
    visit("tokens_per_minute", tenant.tokens_per_minute, 0, "prompt and answer; 0: no limit",
          kRate);
    visit("concurrency", tenant.concurrency, 0, "requests with a worker at once; 0: no limit",
          Range{0, limits::kConnections});
    visit("weight", tenant.weight, 1.0, "share of the service when there is not enough for all");
    visit("priority", tenant.priority, 0, "served before all tenants of lower priority",
          Range{-limits::kPriorityMax, limits::kPriorityMax});
    visit("share", tenant.share, "tenant", "who shares cached prefixes: tenant, user or session");
}

template <class Native, class Visitor>
void visit_native(Native& native, Visitor&& visit) {
    visit("model", native.model, "krill", "a GGUF file, or the built-in model");
    visit("workers", native.workers, 1, "engine processes", Range{1, limits::kConfigWorkers});
    visit("threads", native.threads, std::nullopt, "of each worker",
          Range{1, limits::kConfigThreads});
    visit("step_time", native.step_time, std::chrono::milliseconds(50),
          "prompts hold answers up no longer");
    visit("stall_timeout", native.stall_timeout, std::chrono::seconds(15),
          "a worker that is silent for longer has lost its requests");
    visit("thinking", native.thinking, false, "whether answers think unless the request says");
}

template <class Upstream, class Visitor>
void visit_upstream(Upstream& upstream, Visitor&& visit) {
    visit("urls", upstream.urls, std::vector<std::string>{}, "where it answers, up to /v1");
    visit("api_key_env", upstream.api_key_env, "", "the environment variable that holds its key");
    visit("model", upstream.model, "", "the name clients use; empty takes every name");
    visit("upstream_model", upstream.upstream_model, "", "what it is called there");
    visit("max_concurrency", upstream.max_concurrency, 0,
          "requests at a time of each address; 0 is unknown", Range{0, limits::kConfigConcurrency});
    visit("usage", upstream.usage, "always", "always ask streams for usage, or as_asked");
    visit("connect_timeout", upstream.connect_timeout, std::chrono::seconds(2),
          "until a connection is there");
    visit("first_token_timeout", upstream.first_token_timeout, std::chrono::seconds(120),
          "until the first event, or the whole of another answer");
    visit("stall_timeout", upstream.stall_timeout, std::chrono::seconds(60),
          "longest silence after it");
}

template <class Pool, class Visitor>
void visit_pool(Pool& pool, Visitor&& visit) {
    visit("name", pool.name, "stable", "what plans, records and metrics call it");
    visit("engine", pool.engine, "native", "what kind of engine runs it");
    if (is_upstream(*pool.engine)) {
        visit_upstream(pool.upstream, visit);
    } else {
        visit_native(pool.native, visit);
    }
    visit("price.hour", pool.price_hour, 0.0, "of the whole pool; for cost per success");
}

template <class Record, class Visitor>
void visit_record(Record& record, Visitor&& visit) {
    visit("path", record.path, std::nullopt,
          "folder of the records; \"\": in the state folder of `sluice up`");
    visit("retention_age", record.retention_age, std::chrono::hours(24 * 30),
          "older records are deleted");
    visit("retention_bytes", record.retention_bytes, std::uint64_t{4} << 30U,
          "beyond it the oldest records are deleted");
    visit("access_log", record.access_log, false, "one line a request on stderr, as JSON");
    visit("otlp_endpoint", record.otlp_endpoint, std::nullopt,
          "collector of traces; \"\": OTEL_EXPORTER_OTLP_ENDPOINT, else none");
}

template <class Plan, class Visitor>
void visit_plan(Plan& plan, Visitor&& visit) {
    visit("stable", plan.stable, "", "the pool that answers");
    visit("salt", plan.salt, "", "another one deals conversations out to pools anew");
}

template <class Split, class Visitor>
void visit_split(Split& split, Visitor&& visit) {
    visit("pool", split.pool, "", "the pool that answers a share");
    visit("weight", split.weight, std::nullopt, "its share of the conversations");
    visit("lease", split.lease, std::nullopt, "how long that holds unless applied again");
}

template <class Shadow, class Visitor>
void visit_shadow(Shadow& shadow, Visitor&& visit) {
    visit("pool", shadow.pool, "", "the pool that gets copies");
    visit("share", shadow.share, std::nullopt, "of the conversations");
    visit("max_concurrent", shadow.max_concurrent, 0, "copies at a time");
}

template <class Guard, class Visitor>
void visit_guard(Guard& guard, Visitor&& visit) {
    visit("pool", guard.pool, "", "the pool that is watched");
    visit("metric", guard.metric, "", "what is measured");
    visit("max", guard.max, std::nullopt, "a share, or seconds: more sends all traffic back");
    visit("max_ratio", guard.max_ratio, std::nullopt, "the same, as a multiple of stable's");
    visit("min_samples", guard.min_samples, 0, "of each pool, before it says anything");
    visit("window", guard.window, std::chrono::milliseconds{}, "how far it looks back");
}

// Written in docs and plans already, so a reader deserves better than "unknown key".
constexpr auto kRootLater = std::to_array<std::string_view>({"kv"});

// ---- Reading --------------------------------------------------------------------------------------

/// Sets each field to its default, and to what the file says if there is a table.
class Reader {
public:
    Reader() = default;
    explicit Reader(Table table) : table_(std::move(table)) {}

    template <class T, class Default>
    void operator()(std::string_view key, Setting<T>& setting, Default&& value, std::string_view,
                    Range range = {}) {
        setting = {T(std::forward<Default>(value)), "default"};
        if (!table_) return;
        // What may be left empty may be written empty.
        if constexpr (std::is_same_v<T, std::string>) {
            if (setting->empty() && table_->text(key) == "") return;
        }
        const std::size_t dot = key.find('.');
        if (dot == std::string_view::npos) {
            read(*table_, key, setting, range);
        } else if (std::optional<Table> inner = table_->table(key.substr(0, dot))) {
            read(*inner, key.substr(dot + 1), setting, range);
            inner->finish();
        }
    }

private:
    template <class T>
    static void read(Table& table, std::string_view key, Setting<T>& setting, Range range) {
        std::optional<T> value = get(table, key, T{}, range);
        if (value) setting = {std::move(*value), table.place(key)};
    }

    static std::optional<bool> get(Table& table, std::string_view key, bool, Range) {
        return table.boolean(key);
    }
    static std::optional<std::int64_t> get(Table& table, std::string_view key, std::int64_t,
                                           Range range) {
        return table.integer(key, range);
    }
    static std::optional<double> get(Table& table, std::string_view key, double, Range) {
        return table.number(key, 0.0);
    }
    static std::optional<std::optional<std::int64_t>> get(Table& table, std::string_view key,
                                                          std::optional<std::int64_t>,
                                                          Range range) {
        const auto value = table.integer_or(key, range, "auto");
        return value ? std::optional(value->number) : std::nullopt;
    }
    static std::optional<std::string> get(Table& table, std::string_view key, const std::string&,
                                          Range) {
        constexpr std::size_t kLongest = 4096;
        std::optional<std::string> text = table.text(key);
        if (!text) return std::nullopt;
        const auto is_control = [](char c) {
            return static_cast<unsigned char>(c) < 0x20 || c == '\x7F';
        };
        if (!text->empty() && text->size() <= kLongest &&
            std::find_if(text->begin(), text->end(), is_control) == text->end()) {
            return text;
        }
        table.reject(key, "is empty, too long or holds control characters");
        return std::nullopt;
    }
    static std::optional<std::optional<std::string>> get(Table& table, std::string_view key,
                                                         const std::optional<std::string>&,
                                                         Range range) {
        std::optional<std::string> text = table.text(key);
        if (!text) return std::nullopt;
        // "" is how TOML writes "not set", which it has no word for.
        if (text->empty()) return std::optional<std::string>();
        return get(table, key, std::string(), range);
    }
    static std::optional<std::chrono::milliseconds> get(Table& table, std::string_view key,
                                                        std::chrono::milliseconds, Range) {
        return table.duration(key);
    }
    static std::optional<std::vector<std::string>> get(Table& table, std::string_view key,
                                                       const std::vector<std::string>&, Range) {
        return table.texts(key);
    }
    static std::optional<std::uint64_t> get(Table& table, std::string_view key, std::uint64_t,
                                            Range) {
        return table.bytes(key);
    }
    static std::optional<HostPort> get(Table& table, std::string_view key, const HostPort&, Range) {
        const std::optional<std::string> text = table.text(key);
        if (!text) return std::nullopt;
        const Result<HostPort> address = parse_host_port(*text);
        if (address) return *address;
        table.reject(key, "is not an address; write it like \"127.0.0.1:8080\" or \"[::1]:8080\"");
        return std::nullopt;
    }

    std::optional<Table> table_;
};

bool is_name(std::string_view name) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return !name.empty() && name.size() <= 64 &&
           name.find_first_not_of(kAllowed) == std::string_view::npos;
}

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

void check_url(Table& table, std::string_view key, const std::string& url) {
    const std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
    const bool good = scheme > 0 && url.size() > scheme && !url.ends_with('/') &&
                      url.find_first_of(" \t\r\n?#@") == std::string::npos;
    if (!good) table.reject(key, "is not an address; write it like \"http://10.0.0.7:8000/v1\"");
}

void check_native(Table& table, const NativeConfig& native) {
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

PoolConfig read_pool(Table table) {
    PoolConfig pool;
    visit_pool(pool, Reader(table));
    check_engine(table, *pool.engine);
    if (!is_name(*pool.name)) {
        table.reject("name", "must be at most 64 of a-z, 0-9, '-' and '_'");
    }
    if (is_upstream(*pool.engine)) {
        check_upstream(table, pool.upstream);
    } else {
        check_native(table, pool.native);
    }
    table.finish();
    return pool;
}

std::vector<PoolConfig> read_pools(Table& root) {
    std::vector<PoolConfig> pools;
    std::set<std::string> names;
    for (Table& table : root.tables("pool")) {
        if (pools.size() == limits::kConfigPools) {
            table.reject("name", fmt::format("is one pool more than {}", limits::kConfigPools));
            break;
        }
        PoolConfig pool = read_pool(table);
        if (!names.insert(*pool.name).second) table.reject("name", "is used by an earlier pool");
        pools.push_back(std::move(pool));
    }
    if (pools.empty()) visit_pool(pools.emplace_back(), Reader());
    return pools;
}

GatewayConfig read_gateway(Table& root) {
    GatewayConfig gateway;
    std::optional<Table> table = root.table("gateway");
    visit_gateway(gateway, table ? Reader(*table) : Reader());
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
    visit_tenant(tenant, Reader(table));
    if (!is_name(*tenant.name)) {
        table.reject("name", "must be 1 to 64 of a-z, 0-9, '-' and '_'");
    }
    if (*tenant.weight <= 0) table.reject("weight", "must be above 0");
    if (std::ranges::find(kShares, *tenant.share) == kShares.end()) {
        table.reject("share", "must be \"tenant\", \"user\" or \"session\"");
    }
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

RecordConfig read_record(Table& root) {
    RecordConfig record;
    std::optional<Table> table = root.table("record");
    visit_record(record, table ? Reader(*table) : Reader());
    if (table) table->finish();
    return record;
}

std::expected<ServiceConfig, std::vector<Error>> read(const Document& document) {
    Table root = document.root();
    ServiceConfig config;
    config.gateway = read_gateway(root);
    config.pools = read_pools(root);
    config.plan = read_plan(root, config.pools);
    config.tenants = read_tenants(root);
    config.record = read_record(root);
    for (const std::string_view key : kRootLater) root.forbid(key, kNotYet);
    root.finish();
    std::vector<Error> errors = document.errors();
    if (!errors.empty()) return std::unexpected(std::move(errors));
    return config;
}

// ---- Printing -------------------------------------------------------------------------------------

std::string literal(bool value) { return value ? "true" : "false"; }
std::string literal(std::int64_t value) { return fmt::format("{}", value); }
std::string literal(double value) {
    // TOML tells 1.0 from 1; both read back, but a price is a price.
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
std::string literal(std::string_view value) {
    std::string text = "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
    }
    return text + '"';
}
std::string literal(const std::vector<std::string>& value) {
    std::string text;
    for (const std::string& each : value) {
        if (!text.empty()) text += ", ";
        text += literal(std::string_view(each));
    }
    return '[' + text + ']';
}
std::string literal(const HostPort& value) { return literal(std::string_view(to_string(value))); }
std::string literal(std::chrono::milliseconds value) {
    return literal(std::string_view(format_duration(value)));
}
std::string literal(const std::optional<std::int64_t>& value) {
    return value ? literal(*value) : "\"auto\"";
}
std::string literal(const std::optional<double>& value) { return value ? literal(*value) : ""; }
std::string literal(const std::optional<std::chrono::milliseconds>& value) {
    return value ? literal(*value) : "";
}

std::string literal(const std::optional<std::string>& value) {
    return literal(std::string_view(value.value_or("")));
}
std::string literal(std::uint64_t value) { return literal(std::string_view(format_bytes(value))); }

class Printer {
public:
    Printer(std::string table, std::vector<ConfigRow>& rows)
        : table_(std::move(table)), rows_(&rows) {}

    template <class T, class Default>
    void operator()(std::string_view key, const Setting<T>& setting, const Default&,
                    std::string_view meaning, Range = {}) {
        std::string value = print(*setting);
        if (value.empty()) return;  // Not set, and nothing holds instead.
        rows_->push_back({table_, std::string(key), std::move(value), setting.place, meaning});
    }

private:
    static std::string print(const std::string& value) { return literal(std::string_view(value)); }
    template <class T>
    static std::string print(const T& value) {
        return literal(value);
    }

    std::string table_;
    std::vector<ConfigRow>* rows_;
};

}  // namespace

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

std::vector<ConfigRow> rows(const ServiceConfig& config) {
    std::vector<ConfigRow> rows;
    visit_gateway(config.gateway, Printer("gateway", rows));
    for (std::size_t i = 0; i < config.pools.size(); ++i) {
        visit_pool(config.pools[i], Printer(fmt::format("pool[{}]", i), rows));
    }
    visit_plan(config.plan, Printer("plan", rows));
    for (std::size_t i = 0; i < config.plan.splits.size(); ++i)
        visit_split(config.plan.splits[i], Printer(fmt::format("plan.split[{}]", i), rows));
    for (std::size_t i = 0; i < config.plan.shadows.size(); ++i)
        visit_shadow(config.plan.shadows[i], Printer(fmt::format("plan.shadow[{}]", i), rows));
    for (std::size_t i = 0; i < config.plan.guards.size(); ++i)
        visit_guard(config.plan.guards[i], Printer(fmt::format("plan.guard[{}]", i), rows));
    for (std::size_t i = 0; i < config.tenants.size(); ++i) {
        visit_tenant(config.tenants[i], Printer(fmt::format("tenant[{}]", i), rows));
    }
    visit_record(config.record, Printer("record", rows));
    return rows;
}

std::string render(const ServiceConfig& config) {
    std::string text;
    std::string table;
    for (const ConfigRow& row : rows(config)) {
        if (row.table != table) {
            const std::size_t index = row.table.find('[');  // Of a list of tables.
            text += fmt::format("{}{}\n", table.empty() ? "" : "\n",
                                index == std::string::npos
                                    ? fmt::format("[{}]", row.table)
                                    : fmt::format("[[{}]]", row.table.substr(0, index)));
            table = row.table;
        }
        const std::string line = fmt::format("{} = {}", row.key, row.value);
        text += fmt::format("{:<32}  # {}: {}\n", line, row.place, row.meaning);
    }
    return text;
}

}  // namespace sluice
