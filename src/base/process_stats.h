#pragma once

// What the kernel says of this process; the source of the process_* metrics.

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace sluice {

struct ProcessStats {
    double cpu_seconds = 0;  ///< User and system, all threads.
    std::uint64_t resident_bytes = 0;
    std::uint64_t virtual_bytes = 0;
    std::uint64_t open_fds = 0;
    std::uint64_t max_fds = 0;  ///< Soft limit.
    std::uint64_t threads = 0;
    double start_time = 0;  ///< Seconds since the epoch.
};

[[nodiscard]] Result<ProcessStats> read_process_stats();

/// Field `number` (from 1, as in proc(5)) of /proc/PID/stat, whose second field may itself hold
/// spaces and brackets. 0 where it is missing.
[[nodiscard]] std::uint64_t stat_field(std::string_view stat, int number);

}  // namespace sluice
