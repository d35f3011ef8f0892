#pragma once

// How long the entries of one segment live, in a small file beside it: segments are only appended to,
// but lives grow with use and end with an erasure. A slot of 16 bytes an entry: its expiry, and a
// checksum keyed with the segment's nonce. A slot never written says that the expiry in the segment
// still holds; a damaged one ends the entry, because what was erased must not come back.
//
// A written slot survives the process at once, the machine after `sync_lives`.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "kv/ssd_faults.h"

namespace sluice::kv {

inline constexpr std::size_t kSsdLifeBytes = 16;
/// The expiry of what was erased: long ago.
inline constexpr std::int64_t kSsdErased = 0;

struct SsdLife {
    std::uint32_t slot = 0;
    std::int64_t expires_ms = kSsdErased;
    bool operator==(const SsdLife&) const = default;
};

/// Makes the file if there is none.
[[nodiscard]] Result<void> write_lives(const std::string& path, std::uint64_t nonce,
                                       std::span<const SsdLife> lives, const SsdFaults& faults);
[[nodiscard]] Result<void> sync_lives(const std::string& path, const SsdFaults& faults);
/// Those that were written, by slot; none if there is no file.
[[nodiscard]] Result<std::vector<SsdLife>> read_lives(const std::string& path, std::uint64_t nonce,
                                                      const SsdFaults& faults);

}  // namespace sluice::kv
