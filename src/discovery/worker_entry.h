#pragma once

// A worker of a native pool as somebody names it: a command line, a registration, a key in etcd.

#include <string>
#include <string_view>

#include "base/error.h"
#include "routing/leg_phase.h"

namespace sluice::discovery {

struct WorkerEntry {
    std::string pool;
    std::string url;  ///< "http://10.0.0.7:40001"
    routing::LegPhase phase = routing::LegPhase::kFull;
    bool operator==(const WorkerEntry&) const = default;
};

/// "full", "prefill" or "decode"; workers that only encode images don't exist yet.
[[nodiscard]] Result<routing::LegPhase> parse_phase(std::string_view text);

/// Where a worker can be asked: a scheme, an authority and nothing behind it, at most
/// limits::kWorkerUrlBytes.
[[nodiscard]] Result<void> check_worker_url(std::string_view url);

/// "[POOL[/PHASE]=]URL"; without a pool it is one of `stable`.
[[nodiscard]] Result<WorkerEntry> parse_worker(std::string_view text, std::string_view stable);

/// What `parse_worker` reads.
[[nodiscard]] std::string to_text(const WorkerEntry& worker);

}  // namespace sluice::discovery
