#pragma once

// Appends entries to one new segment and gives it its footer. Entries are staged and written in pieces
// of a megabyte, whatever their size.
//
// Blocking; one thread. A segment whose writer was destroyed unsealed is one with a torn tail.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kv/ssd_directory.h"
#include "kv/ssd_file.h"
#include "kv/ssd_format.h"

namespace sluice::kv {

/// What every segment file is made with.
struct SsdFileOptions {
    std::uint64_t segment_bytes = 0;  ///< Footer and lives included.
    SsdAccess access = SsdAccess::kDirect;
};

class SsdSegmentWriter {
public:
    /// Errors: `kExhausted`: the disk is full; `kIo`.
    [[nodiscard]] static Result<std::unique_ptr<SsdSegmentWriter>> create(
        const SsdDirectory& directory, std::uint64_t number, Retention retention,
        const SsdFileOptions& options, const SsdFaults& faults, SsdSpace& space);

    /// Whether a segment that is empty has room for it.
    [[nodiscard]] static bool fits_ever(std::size_t name_bytes, std::uint64_t value_bytes,
                                        std::uint64_t segment_bytes);
    /// Whether one more entry and its share of footer and lives have room.
    [[nodiscard]] bool fits(std::size_t name_bytes, std::uint64_t value_bytes) const;
    /// Stages an entry that fits; it can be read once `flush` has returned. After an error the segment
    /// takes nothing more.
    [[nodiscard]] Result<SsdRecord> append(std::string_view name, std::string_view value,
                                           std::int64_t expires_ms, std::uint64_t sequence);
    [[nodiscard]] Result<void> flush();
    /// All that was flushed survives the machine.
    [[nodiscard]] Result<void> sync();
    /// Footer, sync, and an end right behind it: the last call.
    [[nodiscard]] Result<void> seal();

    [[nodiscard]] const SsdSegmentHeader& header() const { return header_; }
    [[nodiscard]] const std::shared_ptr<SsdFile>& file() const { return file_; }
    /// All that went to the disk, footers and what fills up sectors included.
    [[nodiscard]] std::uint64_t written_bytes() const { return written_; }

private:
    SsdSegmentWriter(const SsdSegmentHeader& header, std::shared_ptr<SsdFile> file,
                     std::uint64_t segment_bytes);
    [[nodiscard]] Result<void> stage(std::string_view bytes);
    [[nodiscard]] Result<void> fill_up_sector();

    const SsdSegmentHeader header_;
    const std::shared_ptr<SsdFile> file_;
    const std::uint64_t segment_bytes_;
    std::unique_ptr<std::byte, void (*)(void*)> buffer_;
    std::size_t staged_ = 0;
    std::uint64_t written_ = 0;       ///< Where the buffer goes.
    std::vector<SsdRecord> records_;  ///< Of all entries, for the footer.
    std::uint64_t footer_bytes_ = 0;
};

/// What is left of `records` in a segment that got no footer: one is written behind them, the rest cut.
[[nodiscard]] Result<void> seal_torn_segment(SsdFile& file, const SsdSegmentHeader& header,
                                             std::span<const SsdRecord> records);

}  // namespace sluice::kv
