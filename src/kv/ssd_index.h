#pragma once

// Where every entry of the SSD tier is, and what its segments are worth: how much of each is alive,
// and how much was used since it was written. A name has one live entry at most: of two the one with
// the higher sequence counts.
//
// Not thread-safe; does no I/O. Expiries are milliseconds since 1970.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kv/ssd_file.h"
#include "kv/ssd_format.h"
#include "kv/ssd_lives.h"

namespace sluice::kv {

class SsdIndex {
public:
    struct Entry {
        const std::string* name = nullptr;  ///< Null: dead, or never written.
        std::uint64_t offset = 0;
        std::uint64_t value_bytes = 0;
        std::uint64_t sequence = 0;
        std::int64_t expires_ms = kSsdErased;
        bool used = false;   ///< Since it was written.
        bool dirty = false;  ///< Its life has changed and was not taken yet.
    };

    struct Segment {
        SsdSegmentHeader header;
        std::shared_ptr<SsdFile> file;
        std::vector<Entry> entries;  ///< By slot.
        std::uint64_t bytes = 0;     ///< Of all entries, dead ones included.
        std::uint64_t live_bytes = 0;
        std::uint64_t used_bytes = 0;
        std::size_t live = 0;
        bool open = false;  ///< Still written to: not to be reclaimed.
        bool deaths_unsynced = false;
        std::vector<std::uint32_t> dirty;
    };

    struct Place {
        Segment* segment = nullptr;
        std::uint32_t slot = 0;
        [[nodiscard]] Entry& entry() const { return segment->entries[slot]; }
        [[nodiscard]] std::uint64_t bytes() const {
            return ssd_entry_bytes(entry().name->size(), entry().value_bytes);
        }
        bool operator==(const Place&) const = default;
    };

    /// Lives that wait to be written beside their segment.
    struct DirtyLives {
        std::uint64_t number = 0;
        std::uint64_t nonce = 0;
        std::vector<SsdLife> lives;
    };

    /// Where a walk over all entries is. Between its steps the index may change.
    struct Cursor {
        std::uint64_t number = 0;  ///< Of the segment; those that come after are yet to be seen.
        std::uint32_t slot = 0;    ///< And in this one, those from here on.
    };

    Segment& add_segment(const SsdSegmentHeader& header, std::shared_ptr<SsdFile> file);
    /// Replaces the entry of that name, unless that one's sequence is higher: then this one is dead.
    void add(Segment& segment, const SsdRecord& record);
    /// The segment is gone; returns the names that were alive in it.
    std::vector<std::string> remove_segment(std::uint64_t number);

    [[nodiscard]] std::optional<Place> find(std::string_view name);
    /// If its segment is still there; the entry may be dead.
    [[nodiscard]] std::optional<Place> at(std::uint64_t number, std::uint32_t slot);
    [[nodiscard]] Segment* segment(std::uint64_t number);
    /// Live entries from the cursor on, out of a bounded number of slots. False: all were seen.
    [[nodiscard]] bool walk(Cursor& cursor, std::vector<Place>& places);
    /// Segments without a live entry that nothing is written to.
    [[nodiscard]] std::vector<std::uint64_t> dead_segments() const;

    void set_used(const Place& place);
    void set_expiry(const Place& place, std::int64_t expires_ms);
    /// Nothing happens to what is dead.
    void kill(const Place& place);

    /// The segment whose reclaim gains the most for what it costs: little of it was used, and it had
    /// its chance for long. Null if none can be reclaimed.
    [[nodiscard]] Segment* victim();
    [[nodiscard]] std::vector<DirtyLives> take_dirty();
    [[nodiscard]] bool dirty() const { return dirty_ != 0; }
    /// Segments in which something died since this was asked.
    [[nodiscard]] std::vector<std::uint64_t> take_unsynced_deaths();

    [[nodiscard]] std::size_t entries() const { return by_name_.size(); }
    [[nodiscard]] std::size_t segments() const { return segments_.size(); }
    [[nodiscard]] std::uint64_t live_bytes(Retention retention) const {
        return live_bytes_[static_cast<std::size_t>(retention)];
    }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>{}(text);
        }
    };
    struct Location {
        Segment* segment = nullptr;
        std::uint32_t slot = 0;
    };

    void mark_dirty(const Place& place);

    std::map<std::uint64_t, std::unique_ptr<Segment>> segments_;  ///< Oldest first.
    std::unordered_map<std::string, Location, Hash, std::equal_to<>> by_name_;
    std::array<std::uint64_t, 3> live_bytes_{};
    std::size_t dirty_ = 0;  ///< Entries.
};

}  // namespace sluice::kv
