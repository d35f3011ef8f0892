#pragma once

// Where every entry of the SSD tier is, what follows it in its chain, and what its segments are worth:
// how much of each is alive, and how much was used since it was written. A name has one live entry at
// most: of two the one with the higher sequence counts.
//
// Not thread-safe; does no I/O. Expiries are milliseconds since 1970.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kv/ssd_file.h"
#include "kv/ssd_format.h"
#include "kv/ssd_kin.h"
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
        std::uint64_t parent = kSsdNoKin;
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

    /// A use, of all that it follows, too, so that nobody finds a chain's end without its start. What
    /// would end a minute or more before `until` lives until then, unless that was over at `now`.
    void use(const Place& place, std::int64_t now_ms, std::int64_t until_ms = 0);
    void set_expiry(const Place& place, std::int64_t expires_ms);
    /// Nothing happens to what is dead.
    void kill(const Place& place);

    /// What an entry of that kin is found by; nothing if none is alive.
    [[nodiscard]] std::optional<Place> find_kin(std::uint64_t kin);
    /// Whether something alive in another segment than `number` follows it.
    [[nodiscard]] bool is_followed_outside(std::uint64_t kin, std::uint64_t number) const;
    /// What is alive and follows it, one after the other.
    [[nodiscard]] std::optional<Place> next_follower(std::uint64_t kin, Cursor& cursor);

    /// What reclaiming a segment of which `kept_bytes` have to be written again gains for what it costs.
    [[nodiscard]] double gain(const Segment& segment, std::uint64_t kept_bytes) const;
    /// The segments whose reclaim gains the most if no more is kept than what was used: at most `most`,
    /// the best one first, and that alone if nothing is alive in it.
    [[nodiscard]] std::vector<std::uint64_t> victims(std::size_t most) const;
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
    /// Names are hashed by their kin, so that they are found by that as well.
    struct ByKin {
        std::uint64_t kin = kSsdNoKin;
    };
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view name) const { return ssd_kin(name); }
        std::size_t operator()(ByKin by) const { return by.kin; }
    };
    struct Equal {
        using is_transparent = void;
        bool operator()(std::string_view left, std::string_view right) const {
            return left == right;
        }
        bool operator()(ByKin by, std::string_view name) const { return by.kin == ssd_kin(name); }
        bool operator()(std::string_view name, ByKin by) const { return by.kin == ssd_kin(name); }
    };
    struct Follower {
        std::uint64_t parent = kSsdNoKin;
        std::uint64_t number = 0;
        std::uint32_t slot = 0;
        auto operator<=>(const Follower&) const = default;
    };
    struct Location {
        Segment* segment = nullptr;
        std::uint32_t slot = 0;
    };

    void set_used(const Place& place);
    void mark_dirty(const Place& place);
    [[nodiscard]] static Follower follower_at(const Place& place) {
        return {.parent = place.entry().parent,
                .number = place.segment->header.number,
                .slot = place.slot};
    }

    std::map<std::uint64_t, std::unique_ptr<Segment>> segments_;  ///< Oldest first.
    std::unordered_map<std::string, Location, Hash, Equal> by_name_;
    std::set<Follower> followers_;  ///< Alive; what they follow may be gone.
    std::array<std::uint64_t, 3> live_bytes_{};
    std::size_t dirty_ = 0;  ///< Entries.
};

}  // namespace sluice::kv
