#pragma once

// What stands in a segment file of the SSD tier, format 2. Everything starts at a sector of 4096 bytes,
// so that it can be read and written past the page cache.
//
//   sector 0   "SLUICESG", version u32, retention u8, number u64, nonce u64, checksum
//   entries    "SLE1", name bytes u32, value bytes u64, nonce u64, sequence u64, expiry i64, slot u32,
//              XXH3-128 of the value, checksum of all this and the name; name; value at a multiple
//              of 64 bytes; filled up with zeros to a whole sector
//   footer     for each entry: offset u64, value bytes u64, sequence u64, expiry i64, slot u32,
//              name bytes u32, parent u64 (kv/ssd_kin.h), name; filled up with zeros to a whole sector
//   last       "SLUICEFT", version u32, entries u32, offset of the footer u64, its bytes u64, nonce u64,
//   sector     checksum of the footer, checksum of this
//
// Numbers are little-endian, checksums XXH3-128. The nonce is random and known to nobody: a value that
// looks like an entry is not taken for one when a torn segment is searched. A segment without a footer
// was being written when its process ended.
//
// In format 1 footers have no parents; it is read, as if nothing followed anything, and not written.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/retention.h"
#include "kv/ssd_kin.h"

namespace sluice::kv {

inline constexpr std::size_t kSsdSectorBytes = 4096;
/// Longer names are not stored: an entry's head is one sector.
inline constexpr std::size_t kSsdNameBytes = limits::kKvNameBytes;
/// Bounds a footer, what a start reads, and the steps taken while others wait.
inline constexpr std::size_t kSsdSegmentEntries = 65'536;
/// Bytes of a record in a footer, its name aside.
inline constexpr std::size_t kSsdRecordBytes = 48;
/// Expiry of what never expires; else milliseconds since 1970.
inline constexpr std::int64_t kSsdNever = INT64_MAX;

struct SsdSegmentHeader {
    Retention retention = Retention::kNone;
    std::uint64_t number = 0;
    std::uint64_t nonce = 0;
    bool operator==(const SsdSegmentHeader&) const = default;
};

struct SsdEntryHeader {
    std::uint64_t nonce = 0;
    std::uint64_t sequence = 0;  ///< Of two entries with one name the higher one counts.
    std::int64_t expires_ms = kSsdNever;
    std::uint32_t slot = 0;  ///< Its place in the segment's table of lives.
    std::uint64_t value_bytes = 0;
    Xxh128 value_checksum;
    std::string_view name;
    bool operator==(const SsdEntryHeader&) const = default;
};

struct SsdRecord {
    std::uint64_t offset = 0;
    std::uint64_t value_bytes = 0;
    std::uint64_t sequence = 0;
    std::int64_t expires_ms = kSsdNever;
    std::uint32_t slot = 0;
    std::uint64_t parent = kSsdNoKin;
    std::string name;
    bool operator==(const SsdRecord&) const = default;
};

struct SsdTrailer {
    std::uint32_t version = 0;
    std::uint32_t entries = 0;
    std::uint64_t footer_offset = 0;
    std::uint64_t footer_bytes = 0;  ///< Without what fills up its last sector.
    std::uint64_t nonce = 0;
    Xxh128 footer_checksum;
    bool operator==(const SsdTrailer&) const = default;
};

[[nodiscard]] constexpr std::uint64_t whole_sectors(std::uint64_t bytes) {
    return (bytes + kSsdSectorBytes - 1) / kSsdSectorBytes * kSsdSectorBytes;
}

/// Where an entry's value begins, counted from the entry.
[[nodiscard]] std::size_t ssd_value_offset(std::size_t name_bytes);
/// What an entry takes in a segment: whole sectors.
[[nodiscard]] std::uint64_t ssd_entry_bytes(std::size_t name_bytes, std::uint64_t value_bytes);

/// One sector.
[[nodiscard]] std::string encode_segment_header(const SsdSegmentHeader& header);
/// Error `kUnsupported`: of another version; `kCorrupt`: none.
[[nodiscard]] Result<SsdSegmentHeader> decode_segment_header(std::string_view sector);

/// Everything before the value, ssd_value_offset() bytes.
[[nodiscard]] std::string encode_entry_header(const SsdEntryHeader& header);
/// `bytes` begin with the entry; the name is a part of them. `kCorrupt` unless all is there and right;
/// the value is not looked at.
[[nodiscard]] Result<SsdEntryHeader> decode_entry_header(std::string_view bytes,
                                                         std::uint64_t nonce);

/// The value of the whole entry `bytes`, which must be the one named; `kCorrupt` otherwise.
[[nodiscard]] Result<std::string_view> decode_entry(std::string_view bytes, std::uint64_t nonce,
                                                    std::string_view name);

/// Footer and last sector, to be written at `footer_offset`.
[[nodiscard]] std::string encode_footer(std::span<const SsdRecord> records,
                                        std::uint64_t footer_offset, std::uint64_t nonce);
/// Whether a segment's last sector was meant to be one, in whatever state it is.
[[nodiscard]] bool is_trailer(std::string_view sector);
/// Of a segment of `file_bytes`. `kCorrupt`: not one, or not of this segment.
[[nodiscard]] Result<SsdTrailer> decode_trailer(std::string_view sector, std::uint64_t nonce,
                                                std::uint64_t file_bytes);
/// `bytes` are the `footer_bytes` at `footer_offset`. Entries follow each other without overlapping,
/// and so do their slots.
[[nodiscard]] Result<std::vector<SsdRecord>> decode_footer(std::string_view bytes,
                                                           const SsdTrailer& trailer);

}  // namespace sluice::kv
