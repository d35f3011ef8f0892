#pragma once

// Appends entries to the open segment of their class, and makes the index know them once they are on
// disk, not before.
//
// Blocking; the thread that writes.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kv/ssd_segment_writer.h"
#include "kv/ssd_state.h"

namespace sluice::kv {

/// An entry for disk: a put, or one carried over from the segment `from`.
struct SsdItem {
    std::string_view name;
    std::string_view value;
    std::int64_t expires_ms = kSsdNever;
    Retention retention = Retention::kNone;
    std::shared_ptr<SsdPut> put;
    std::uint64_t from = 0;  ///< Without a put: number and slot of what is carried.
    std::uint32_t slot = 0;
};

class SsdAppender {
public:
    SsdAppender(SsdState& state, const SsdDirectory& directory, const SsdFileOptions& files,
                const SsdFaults& faults, SsdSpace& space)
        : state_(state), directory_(directory), files_(files), faults_(faults), space_(space) {}

    /// Whether the class's open segment, if it has one, has no room for it.
    [[nodiscard]] bool needs_segment(const SsdItem& item) const;
    /// A new segment for the class; the one before is sealed. Errors: `kExhausted`: the disk is full;
    /// `kIo`.
    [[nodiscard]] Result<void> open_segment(Retention retention);
    /// Name and value are copied. After an error, here and below, all entries that were not on disk
    /// are lost and counted, and their segment takes no more.
    [[nodiscard]] Result<void> append(const SsdItem& item);
    /// Everything appended can be read.
    [[nodiscard]] Result<void> flush();
    /// Everything appended survives the machine.
    [[nodiscard]] Result<void> sync();
    /// As at the end: open segments get their footers.
    void seal_all();

private:
    struct Staged {
        SsdRecord record;
        std::shared_ptr<SsdPut> put;
        std::uint64_t from = 0;
        std::uint32_t slot = 0;
    };
    struct Open {
        std::unique_ptr<SsdSegmentWriter> writer;
        std::vector<Staged> staged;
        std::uint64_t counted_bytes = 0;   ///< Of the writer's, in the stats.
        std::uint64_t unsynced_bytes = 0;  ///< Of what was appended since the last sync.
    };

    [[nodiscard]] Open& open(Retention retention) {
        return open_[static_cast<std::size_t>(retention)];
    }
    [[nodiscard]] Result<void> flush(Open& open);
    void publish(Open& open);
    void publish(SsdIndex::Segment& segment, const Staged& staged);
    void count_written(Open& open);
    /// It is on disk for good, or lost.
    void settle(Open& open);
    void seal(Open& open);
    [[nodiscard]] Result<void> give_up(Open& open, const Error& error);

    SsdState& state_;
    const SsdDirectory& directory_;
    const SsdFileOptions files_;
    const SsdFaults& faults_;
    SsdSpace& space_;
    std::array<Open, 3> open_;
    Result<void> seal_failed_;  ///< Since the last sync.
};

}  // namespace sluice::kv
