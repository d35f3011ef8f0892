#pragma once

// The planted faults of disks (base/fault_points.h) as the SSD tier's files meet them. They may be
// changed while files are in use, so that a test can let a disk fail and come back.
//
// Threads: any.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>

#include "base/fault_points.h"
#include "kv/ssd_format.h"

namespace sluice::kv {

class SsdFaults {
public:
    explicit SsdFaults(const FaultPoints& points) { set(points); }

    void set(const FaultPoints& points) {
        flip_ = points.disk_flip;
        short_ = points.disk_short;
        full_ = points.disk_full;
        error_ = points.disk_error;
        slow_ = points.disk_slow;
    }

    /// The errno a read ends with, 0 for none.
    [[nodiscard]] int read_error() const { return error_ ? EIO : 0; }
    [[nodiscard]] int write_error() const {
        if (error_) return EIO;
        return full_ ? ENOSPC : 0;
    }
    /// So many of `bytes` does one read or write transfer: whole sectors.
    [[nodiscard]] std::size_t transferred(std::size_t bytes) const {
        if (!short_ || bytes <= kSsdSectorBytes) return bytes;
        return std::max(kSsdSectorBytes, bytes / 2 / kSsdSectorBytes * kSsdSectorBytes);
    }
    /// Changes a bit of what was read.
    void damage(std::span<std::byte> bytes) const {
        if (!flip_ || bytes.empty()) return;
        // Another place each time, and the same ones in each run.
        constexpr std::uint64_t kStride = 0x9E3779B97F4A7C15;
        bytes[(reads_damaged_.fetch_add(1) + 1) * kStride % bytes.size()] ^= std::byte{0x10};
    }
    [[nodiscard]] std::chrono::milliseconds delay() const { return slow_; }

private:
    std::atomic<bool> flip_ = false;
    std::atomic<bool> short_ = false;
    std::atomic<bool> full_ = false;
    std::atomic<bool> error_ = false;
    std::atomic<std::chrono::milliseconds> slow_{};
    mutable std::atomic<std::uint64_t> reads_damaged_ = 0;
};

}  // namespace sluice::kv
