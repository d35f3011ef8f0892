#pragma once

// A file's time of modification as wall-clock time, and back.

#include <sys/stat.h>

#include <chrono>

#include "kv/retention.h"

namespace sluice::kv {

[[nodiscard]] inline timespec to_timespec(WallTime time) {
    const auto since = time.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    return {.tv_sec = seconds.count(),
            .tv_nsec = std::chrono::nanoseconds(since - seconds).count()};
}

[[nodiscard]] inline WallTime modified(const struct stat& file) {
    const auto since =
        std::chrono::seconds(file.st_mtim.tv_sec) + std::chrono::nanoseconds(file.st_mtim.tv_nsec);
    return WallTime(std::chrono::duration_cast<WallTime::duration>(since));
}

}  // namespace sluice::kv
