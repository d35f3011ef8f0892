#pragma once

// etcd's JSON gateway (v3): what is asked, and what comes back. Keys and values travel as base64, 64-bit
// numbers as text; a field that is zero or empty is left out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "discovery/worker_entry.h"

namespace sluice::discovery {

[[nodiscard]] std::string to_base64(std::string_view bytes);
/// nullopt if it is none.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

struct EtcdKeyValue {
    std::string key;
    std::string value;
    bool operator==(const EtcdKeyValue&) const = default;
};

struct EtcdRange {
    std::int64_t revision = 0;  ///< Of the whole store, when this was read.
    std::int64_t count = 0;     ///< Keys in the range, whatever part of them is in `kvs`.
    std::vector<EtcdKeyValue> kvs;
};

/// The body for /v3/kv/range: every key that begins with `prefix`, or only those that changed after
/// `since`. (`count` is of all of them in either case.)
[[nodiscard]] std::string range_request(std::string_view prefix,
                                        std::optional<std::int64_t> since = {});
/// Error `kCorrupt` if it is not the answer to that.
[[nodiscard]] Result<EtcdRange> parse_range(std::string_view json);

/// The body for /v3/lease/grant, and its answer: the lease's id as text.
[[nodiscard]] std::string grant_request(std::int64_t seconds);
[[nodiscard]] Result<std::string> parse_grant(std::string_view json);
/// For /v3/kv/put.
[[nodiscard]] std::string put_request(std::string_view key, std::string_view value,
                                      std::string_view lease);
/// For /v3/lease/keepalive, and what is left of the lease in seconds; 0 if it has ended.
[[nodiscard]] std::string lease_request(std::string_view lease);
[[nodiscard]] Result<std::int64_t> parse_keep_alive(std::string_view json);

/// A worker as a value: {"url","pool","phase"?}.
[[nodiscard]] std::string to_json(const WorkerEntry& worker);
/// Error `kInvalid` names the field that is wrong; fields that it does not know it does not mind.
[[nodiscard]] Result<WorkerEntry> parse_worker_json(std::string_view json);

}  // namespace sluice::discovery
