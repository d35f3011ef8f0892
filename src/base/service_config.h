#pragma once

// The configuration of the service: one TOML file, every setting with a default, every value with
// the place it comes from. Names and defaults stand once, in service_settings.h; reading, checking
// and `sluice config show` (base/config_rows.h) all walk that one table.
//
// A flag overrides the file: `config.gateway.listen = {address, "--port"}`.

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/kv_config.h"
#include "base/plan_config.h"
#include "base/setting.h"
#include "base/units.h"

namespace sluice {

struct GatewayConfig {
    Setting<HostPort> listen;
    Setting<HostPort> admin;
    Setting<std::optional<std::string>> keys;  ///< File of API keys; absent: in the state folder.
    /// Present: requests without a key are answered, wherever they come from. Then it is
    /// `kOpenToAnyone`, so that nobody opens a service by a stray `true`.
    Setting<std::optional<std::string>> open;
    Setting<std::optional<std::string>> tls_certificate;  ///< Absent: plain HTTP.
    Setting<std::optional<std::string>> tls_key;
    Setting<bool> tls_admin;                        ///< Whether the admin address speaks TLS, too.
    Setting<std::optional<std::string>> ca_bundle;  ///< For https pools; absent: the system's.
    Setting<std::int64_t> queue_requests;
    Setting<std::chrono::milliseconds> queue_wait;     ///< Longer waits are refused at once.
    Setting<std::chrono::milliseconds> headers_after;  ///< Then a waiting stream gets its head.
};

inline constexpr std::string_view kOpenToAnyone = "anyone may use this";

inline constexpr std::chrono::milliseconds kStepTimeMost{10'000};
inline constexpr std::chrono::milliseconds kStallTimeLeast{3'000};

/// Of a pool of our own engines.
struct NativeConfig {
    Setting<std::string> model;  ///< A GGUF file, or "krill".
    /// Engines that somebody else runs: "http://10.0.0.7:40001", or "decode=http://10.0.0.7:40001".
    Setting<std::vector<std::string>> urls;
    Setting<std::int64_t> workers;  ///< That do everything; counts unless there is a split.
    /// A split: so many do prompts, so many go on from there. Both, or neither.
    Setting<std::int64_t> prefill;
    Setting<std::int64_t> decode;
    Setting<std::int64_t> dp;  ///< Engines in each process, on one copy of the weights.
    Setting<std::optional<std::int64_t>> threads;  ///< Of one worker; nullopt is "auto".
    /// The longest that a step may be predicted to take while some request generates.
    Setting<std::chrono::milliseconds> step_time;
    /// Longest silence of a worker that answers; it says something every two seconds.
    Setting<std::chrono::milliseconds> stall_timeout;
    Setting<bool> thinking;  ///< Whether answers think unless asked not to.

    [[nodiscard]] bool is_split() const { return *prefill > 0; }
    /// Engine processes of our own.
    [[nodiscard]] std::int64_t processes() const {
        if (!urls->empty()) return 0;
        return is_split() ? *prefill + *decode : *workers;
    }
};

/// Of a pass-through pool: OpenAI-compatible addresses of any engine.
struct UpstreamConfig {
    Setting<std::vector<std::string>> urls;  ///< At least one: "http://10.0.0.7:8000/v1".
    Setting<std::string> api_key_env;        ///< Names an environment variable; empty: no key.
    Setting<std::string> model;              ///< The name clients use; empty takes every name.
    Setting<std::string> upstream_model;     ///< What it is called there; empty: the same.
    Setting<std::int64_t> max_concurrency;   ///< Of each address; 0 is unknown.
    Setting<std::string> usage;              ///< "always" or "as_asked".
    Setting<std::chrono::milliseconds> connect_timeout;
    Setting<std::chrono::milliseconds> first_token_timeout;
    Setting<std::chrono::milliseconds> stall_timeout;
    /// Present: it is `kTenantsMayShare`, and one tenant's cached prefixes may serve another.
    Setting<std::optional<std::string>> shared_cache;
};

inline constexpr std::string_view kTenantsMayShare = "tenants may share";

/// Whether its requests can bring a salt that keeps their cached prefixes apart from others'.
[[nodiscard]] bool takes_cache_salt(std::string_view engine);

struct PoolConfig {
    Setting<std::string> name;
    Setting<std::string> engine;  ///< "native", "openai", "vllm", "sglang", "llama.cpp".
    NativeConfig native;          ///< Set if `is_native()`.
    UpstreamConfig upstream;      ///< Set if not.
    Setting<double> price_hour;   ///< Of the whole pool, in any one currency.

    [[nodiscard]] bool is_native() const { return *engine == "native"; }
    [[nodiscard]] bool shares_cache() const { return !is_native() && *upstream.shared_cache; }
    /// Neither keeps tenants apart nor was told that they may share: it may serve one.
    [[nodiscard]] bool serves_one_tenant() const {
        return !is_native() && !takes_cache_salt(*engine) && !shares_cache();
    }
};

struct TenantConfig {
    Setting<std::string> name;
    Setting<std::int64_t> requests_per_minute;  ///< 0: no limit; so for the next two.
    Setting<std::int64_t> tokens_per_minute;
    Setting<std::int64_t> concurrency;
    Setting<double> weight;  ///< Above 0.
    Setting<std::int64_t> priority;
    Setting<std::string> share;      ///< Who shares cached prefixes: "tenant", "user" or "session".
    Setting<std::string> retention;  ///< "agent", "chat" or "none": of prompts without tools.
    Setting<std::uint64_t> kv_bytes;  ///< In each tier; 0: as KvConfig::tenant_bytes says.
};

struct RecordConfig {
    Setting<std::optional<std::string>> path;  ///< Of a folder.
    Setting<std::chrono::milliseconds> retention_age;
    Setting<std::uint64_t> retention_bytes;
    Setting<bool> access_log;
    Setting<std::optional<std::string>> otlp_endpoint;
};

/// Where workers stand that nobody of us started.
struct DiscoveryConfig {
    Setting<std::vector<std::string>> etcd;  ///< "http://127.0.0.1:2379"; none: nobody is asked.
    Setting<std::string> prefix;             ///< Of the workers' keys there.
};

struct ServiceConfig {
    GatewayConfig gateway;
    RecordConfig record;
    DiscoveryConfig discovery;
    KvConfig kv;
    std::vector<PoolConfig> pools;  ///< At least one; names are unique.
    PlanConfig plan;
    std::vector<TenantConfig> tenants;  ///< Names are unique.
};

/// What holds without a file: Krill in one pool of one worker.
[[nodiscard]] ServiceConfig default_service_config();

/// All mistakes at once, in the order of the file; `name` stands for the file in them.
[[nodiscard]] std::expected<ServiceConfig, std::vector<Error>> parse_service_config(
    std::string_view text, std::string name);
/// A file that can't be read is the only error with `ErrorCode::kIo`.
[[nodiscard]] std::expected<ServiceConfig, std::vector<Error>> load_service_config(
    const std::string& path);

}  // namespace sluice
