#pragma once

// What an operator may tell a holder of KV blocks, a worker or a cache node: to forget some, to keep
// some for a while, to read all of them again, and, a worker, which nodes there are.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/retention.h"

namespace sluice::port {

/// Tenants with a bound of their own.
inline constexpr std::size_t kKvOrderTenants = 16'384;
/// Names of blocks in one order to pin.
inline constexpr std::size_t kKvOrderNames = 65'536;

/// How long an answer to POST /kv/verify may take: all that is held is read, at a bounded speed.
inline constexpr std::chrono::hours kKvVerifyTime{1};

/// POST /kv/drop. What fits all that is named goes; something must be named.
struct KvDropOrder {
    std::optional<std::string> tenant{};
    std::optional<Retention> retention{};  ///< "class" on the wire.
    std::optional<std::string> name{};     ///< Of one block: "kv:acme:chat:…".
    bool operator==(const KvDropOrder&) const = default;
};

/// POST /kv/pin. Pins are leases: another order for the same block replaces its end.
struct KvPinOrder {
    std::vector<std::string> names{};
    std::int64_t seconds = 0;  ///< 0 ends the lease; at most limits::kKvPinSeconds.
    bool operator==(const KvPinOrder&) const = default;
};

/// POST /kv/nodes, of a worker. One with an older epoch than it follows is refused with 409.
struct KvNodesOrder {
    std::uint64_t epoch = 0;
    std::vector<std::string> nodes{};  ///< "redis://10.0.0.7:7301"
    bool operator==(const KvNodesOrder&) const = default;
};

/// POST /kv/bounds: what these tenants may take of memory, each of more than 0 bytes; all others as the
/// holder was started with. Replaces what was said before.
struct KvBoundsOrder {
    std::map<std::string, std::uint64_t, std::less<>> tenants{};
    bool operator==(const KvBoundsOrder&) const = default;
};

/// The answer to POST /kv/drop, pin and verify: how many blocks it was about, and of how many that
/// did not hold: they were not there, or they were damaged.
struct KvOrderResult {
    std::uint64_t done = 0;
    std::uint64_t bytes = 0;
    std::uint64_t failed = 0;
    bool operator==(const KvOrderResult&) const = default;
};

[[nodiscard]] std::string to_json(const KvDropOrder& order);
[[nodiscard]] std::string to_json(const KvPinOrder& order);
[[nodiscard]] std::string to_json(const KvNodesOrder& order);
[[nodiscard]] std::string to_json(const KvBoundsOrder& order);
[[nodiscard]] std::string to_json(const KvOrderResult& result);

[[nodiscard]] Result<KvDropOrder> parse_kv_drop_order(std::string_view json);
[[nodiscard]] Result<KvPinOrder> parse_kv_pin_order(std::string_view json);
[[nodiscard]] Result<KvNodesOrder> parse_kv_nodes_order(std::string_view json);
[[nodiscard]] Result<KvBoundsOrder> parse_kv_bounds_order(std::string_view json);
[[nodiscard]] Result<KvOrderResult> parse_kv_order_result(std::string_view json);

}  // namespace sluice::port
