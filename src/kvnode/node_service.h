#pragma once

// What everything on a cache node's loop shares: what it keeps, who is connected, and what it counts.

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "base/fault_points.h"
#include "base/hash.h"
#include "base/limits.h"
#include "kvnode/node_store.h"
#include "kvnode/read_budget.h"
#include "net/event_loop.h"

namespace sluice::kvnode {

/// Who sends commands.
struct NodeClient {
    std::uint64_t id = 0;
    std::string peer;  ///< Address and port.
    std::string name;  ///< As CLIENT SETNAME says.
    std::string library;
    std::string library_version;
    std::chrono::steady_clock::time_point since;
    /// What the SSD was asked for in its name and has not brought yet.
    ReadBudget fetching{std::numeric_limits<std::uint64_t>::max()};
    std::uint64_t unread_bytes = 0;  ///< Of its answers, when they were last counted.
    std::function<std::uint64_t()> count_unread;
    /// It reads too slowly.
    std::function<void()> cut;
    bool authenticated = false;
    bool quitting = false;  ///< The connection ends after this answer.
    /// A fault is planted in the answer that is being written.
    enum class Fault : std::uint8_t { kNone, kCut, kHang } fault = Fault::kNone;
};

struct NodeService {
    net::EventLoop& loop;
    NodeStore& store;
    FaultPoints faults;
    std::optional<Sha256Digest> password;  ///< Without it nobody has to say one.

    std::map<std::uint64_t, NodeClient*> clients{};
    std::uint64_t clients_total = 0;
    std::uint64_t clients_cut = 0;  ///< For what they sent, or didn't read.
    std::uint64_t commands = 0;
    std::uint64_t hits = 0;  ///< Of reads, in either tier.
    std::uint64_t misses = 0;
    std::uint64_t found = 0;  ///< Names that look-ups asked for, in either tier.
    std::uint64_t not_found = 0;
    std::uint64_t bytes_read = 0;     ///< Of values that were asked for,
    std::uint64_t bytes_written = 0;  ///< and put.
    std::uint64_t input_bytes = 0;    ///< Held by requests that are not complete.
    /// And by answers that wait to be read; what was read since they were counted, too.
    std::uint64_t unread_bytes = 0;
    /// Of answers, for all clients together: as much as one may leave unread.
    std::uint64_t unread_most = limits::kKvNodeOutputBytes;
    /// Values from the SSD that are on their way to clients: all together as much as one client may
    /// leave unread.
    ReadBudget ssd_answers{limits::kKvNodeOutputBytes};
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
};

[[nodiscard]] inline kv::WallTime wall_now() { return std::chrono::system_clock::now(); }

}  // namespace sluice::kvnode
