#pragma once

// Faults planted on purpose into a shipped program, so that what must notice them - shadows, guards,
// supervision - can be tried on the real thing. All are off unless the environment says otherwise:
//
//   SLUICE_FAULTS="slow_step=20ms,crash_after=500" sluice engine ...

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace sluice {

struct FaultPoints {
    std::chrono::milliseconds slow_step{0};  ///< Every step of the engine takes this much longer.
    bool other_sampling = false;  ///< Tokens are drawn with another seed than was asked for.
    bool wrong_model = false;     ///< Logits are a little beside the model's.
    std::optional<std::uint64_t> crash_after;  ///< The process aborts after so many tokens.
    std::optional<std::uint64_t> stall_after;  ///< No step ends any more after so many tokens.

    // What becomes of the blocks that another worker pulls from this one:
    bool pull_cut = false;   ///< The answer breaks off in the middle.
    bool pull_flip = false;  ///< One bit of each block arrives changed.
    bool pull_hang = false;  ///< The answer begins and never ends.

    // Of files that keep blocks:
    bool disk_flip = false;                  ///< One bit of what is read is another.
    bool disk_short = false;                 ///< Reads end early.
    bool disk_full = false;                  ///< Writes find no room (ENOSPC).
    bool disk_error = false;                 ///< Reads and writes fail (EIO).
    std::chrono::milliseconds disk_slow{0};  ///< Each read and write takes this much longer.

    // Of a cache node's answers:
    bool node_cut = false;        ///< They break off in the middle.
    bool node_hang = false;       ///< They begin and never end.
    bool node_flip = false;       ///< One bit of each value is another.
    bool node_other_key = false;  ///< They bring another key's value.

    // Of the gateway:
    /// A stream goes on with another worker after so many tokens, again and again.
    std::optional<std::uint64_t> move_every;

    [[nodiscard]] bool any() const { return *this != FaultPoints{}; }
    bool operator==(const FaultPoints&) const = default;
};

/// "slow_step=20ms,other_sampling,wrong_model,crash_after=500,stall_after=500,pull_cut,pull_flip,
/// pull_hang,disk_flip,disk_short,disk_full,disk_error,disk_slow=2s,node_cut,node_hang,node_flip,
/// node_other_key,move_every=1". An unknown name is an error with the nearest known one.
[[nodiscard]] Result<FaultPoints> parse_fault_points(std::string_view text);

/// Of SLUICE_FAULTS; none if it is not set.
[[nodiscard]] Result<FaultPoints> fault_points_of_environment();

}  // namespace sluice
