#pragma once

// What must outlive a restart: the plan, whether it was rolled back and why, and how long its weights
// hold. Written as one line, a checksum and a JSON document; what cannot be read counts as rolled back.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "traffic/plan.h"

namespace sluice::traffic {

using WallTime = std::chrono::system_clock::time_point;

struct State {
    std::uint64_t version = 0;  ///< Of the plan; each that is applied has the next one.
    Plan plan;
    /// Digest of the configuration's plan when it was last looked at: as long as the file says the
    /// same, what was applied since goes on holding.
    std::string config_digest;
    bool latched = false;
    std::string reason;       ///< Why: "ttft_p95 of candidate ...", "by hand: ...".
    std::string reason_kind;  ///< For metrics: "ttft_p95", "manual", "breaker", "unreadable".
    WallTime since{};         ///< Of the latch.
    std::map<std::string, WallTime, std::less<>> lease_ends;  ///< By split pool.

    bool operator==(const State&) const = default;
};

/// Times in it are whole milliseconds.
[[nodiscard]] std::string to_text(const State& state);

/// Error `kCorrupt` for anything that `to_text` does not write; a checksum over the whole tells.
[[nodiscard]] Result<State> parse_state(std::string_view text);

}  // namespace sluice::traffic
