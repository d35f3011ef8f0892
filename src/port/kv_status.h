#pragma once

// What a holder of KV blocks, a worker or a cache node, says at GET /kv/status: what each of its tiers
// holds and for whom, and what became of what it was asked.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::port {

/// Rows of one list and entries of one map; a list of holdings has at most the next.
inline constexpr std::size_t kKvStatusRows = 1'024;
inline constexpr std::size_t kKvStatusHoldings = 16'384;

/// Of one tenant and one class.
struct KvHolding {
    std::string tenant;
    std::string retention;  ///< "agent", "chat" or "none"; "class" on the wire.
    std::uint64_t bytes = 0;
    std::uint64_t entries = 0;
    bool operator==(const KvHolding&) const = default;
};

struct KvTierStatus {
    std::string tier;  ///< "pool", "dram", "ssd", "node" or "directory".
    std::uint64_t bytes = 0;
    std::uint64_t limit_bytes = 0;  ///< 0: none, or not known here.
    std::uint64_t entries = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t corrupt = 0;                         ///< Read, found wrong, never served.
    std::map<std::string, std::uint64_t> evictions{};  ///< By cause.
    std::map<std::string, std::uint64_t> counters{};  ///< Whatever else it counts: "written_bytes".
    std::vector<KvHolding> holdings{};
    bool operator==(const KvTierStatus&) const = default;
};

/// A remote tier, as who asks it sees it.
struct KvStoreStatus {
    std::string url;   ///< Without its password.
    std::string kind;  ///< "sluice", "redis", "cluster" or "directory"; empty: not known yet.
    bool reachable = false;
    std::map<std::string, std::uint64_t> counters{};  ///< "hits", "misses", "timeouts", ...
    bool operator==(const KvStoreStatus&) const = default;
};

struct KvStatus {
    std::uint64_t epoch = 0;  ///< Of the list of nodes that a worker follows.
    std::vector<KvTierStatus> tiers{};
    std::vector<KvStoreStatus> stores{};  ///< Of a worker: the nodes and the directory.
    std::uint64_t pinned = 0;             ///< Blocks under a lease.
    bool operator==(const KvStatus&) const = default;
};

[[nodiscard]] std::string to_json(const KvStatus& status);
[[nodiscard]] Result<KvStatus> parse_kv_status(std::string_view json);

}  // namespace sluice::port
