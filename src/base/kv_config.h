#pragma once

// The [kv] tables of a configuration: the tiers that keep KV blocks beyond an engine's own pool, and
// for how long. What the words mean: docs/cache.md.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/setting.h"

namespace sluice {

namespace config {
class Table;
}

/// [[kv.node]]: a cache server that somebody else runs, ours or Redis or Valkey.
struct KvNodeConfig {
    Setting<std::string> url;  ///< "redis://10.0.0.7:7301"; never with a password.
    /// Names the environment variable that holds its password; empty: it asks for none.
    Setting<std::string> password_env;
    /// Where a Sluice node tells its events and its state; absent for any other server.
    Setting<std::optional<std::string>> http;
};

struct KvConfig {
    Setting<std::uint64_t> dram;  ///< Of each engine process; 0: no such tier.
    Setting<std::optional<std::string>> directory;
    /// PEM, of whom rediss:// nodes are believed by; absent: the system's.
    Setting<std::optional<std::string>> ca_bundle;
    Setting<std::string> reuse;                ///< "exact" or "compatible".
    Setting<std::string> force;                ///< "auto", "load" or "recompute".
    Setting<std::int64_t> replicas;            ///< Nodes that hold each block; at least 1.
    Setting<std::chrono::milliseconds> agent;  ///< How long blocks of this class live unused.
    Setting<std::chrono::milliseconds> chat;
    Setting<std::uint64_t> tenant_bytes;  ///< Of a tenant that says nothing else; 0: no limit.
    Setting<std::int64_t> start_nodes;    ///< By `sluice up`, each with:
    Setting<std::uint64_t> node_dram;
    Setting<std::uint64_t> node_ssd;  ///< 0: none.
    std::vector<KvNodeConfig> nodes;  ///< URLs are unique.
};

/// Reads the table [kv] to its end; mistakes in it are noted in its document. Without a table, the
/// defaults.
[[nodiscard]] KvConfig read_kv_config(std::optional<config::Table> table);

}  // namespace sluice
