#pragma once

// What an SSD tier is opened with, what it tells, and what it counts.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/fault_points.h"
#include "base/limits.h"

namespace sluice::kv {

enum class SsdChange : std::uint8_t {
    kStored,     ///< It is on disk and can be read from there.
    kErased,     ///< By its owner.
    kExpired,    ///< Its time had come.
    kReclaimed,  ///< Its segment made room for others.
    kDamaged,    ///< It failed its checks, or the disk could not read it.
};

struct SsdEvent {
    std::string name;
    SsdChange change = SsdChange::kStored;
};

struct SsdOptions {
    std::string dir;
    std::uint64_t bytes = 0;  ///< What all files may take, at any time; at least 8 segments.
    /// 0: a 64th of `bytes`, from 4 MiB to limits::kSsdSegmentBytes. Larger values are not stored.
    std::uint64_t segment_bytes = 0;
    std::uint64_t queue_bytes = limits::kSsdQueueBytes;
    std::size_t read_depth = 32;            ///< Reads that the disk has at a time.
    std::size_t entries = 4 * 1024 * 1024;  ///< At most; each takes some 330 bytes of memory.
    bool uring = true;                      ///< Where the kernel has it.
    bool direct = true;                     ///< Past the page cache, where the file system can.
    /// What was written is made to survive a power cut this often, without anybody asking.
    std::chrono::milliseconds sync_every{1'000};
    FaultPoints faults{};
    /// What time it is for expiries.
    std::function<std::chrono::system_clock::time_point()> clock = std::chrono::system_clock::now;
    /// Called in order, on the thread that writes. What was found at the start is not told.
    std::function<void(std::span<const SsdEvent>)> listener;
};

struct SsdStats {
    std::uint64_t bytes = 0;      ///< That the files take on disk, what is reserved included.
    std::uint64_t bytes_max = 0;  ///< Below Options::bytes while the disk has no more.
    std::array<std::uint64_t, 3> live_bytes{};  ///< Of entries by class, on disk.
    std::size_t entries = 0;                    ///< On disk.
    std::size_t segments = 0;
    std::uint64_t queue_bytes = 0;     ///< Waiting to be written.
    std::uint64_t unsynced_bytes = 0;  ///< On disk, and gone after a power cut.

    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t corrupt = 0;      ///< Entries that failed their checks, each once.
    std::uint64_t read_errors = 0;  ///< The disk's.
    std::uint64_t overloaded = 0;   ///< Reads that were refused because too many waited.

    std::uint64_t stored = 0;          ///< Entries.
    std::uint64_t dropped = 0;         ///< Puts refused because the queue was full.
    std::uint64_t refused = 0;         ///< Puts too large for a segment, or named too long.
    std::uint64_t write_failures = 0;  ///< Entries lost because the disk failed or was full.
    std::uint64_t sync_failures = 0;   ///< Of syncs that nobody asked for.

    std::uint64_t user_bytes = 0;  ///< Written for puts.
    /// Written again: in use, or followed by others, when their segment was reclaimed.
    std::uint64_t carried_bytes = 0;
    std::uint64_t written_bytes = 0;  ///< All that went to the disk since the start: its wear.
    std::uint64_t reclaims = 0;       ///< Segments.
    std::uint64_t reclaimed = 0;      ///< Entries that went with them.
    std::uint64_t expired = 0;

    std::uint64_t start_bytes_read = 0;  ///< To find everything again.
    std::uint64_t torn_segments = 0;     ///< That had to be searched at the start.
    std::uint64_t ignored_segments = 0;  ///< Files that were no segments of ours.
    bool uring = false;                  ///< How it reads.
};

}  // namespace sluice::kv
