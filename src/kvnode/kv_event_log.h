#pragma once

// The last names that came into the tiers of a worker or a node and went, numbered from its start.
// Bounded: who is further behind than the log reaches starts from a snapshot.
//
// Threads: any. Nothing is allocated after the start but what `since` returns.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kv/named_block.h"
#include "port/kv_events.h"

namespace sluice::kvnode {

/// A block, and where it lies: "pool", "dram", "ssd". The text lives for ever.
struct TieredBlock {
    kv::NamedBlock block;
    std::string_view tier;
};

class KvEventLog {
public:
    /// Keeps the last `capacity` events.
    explicit KvEventLog(std::size_t capacity);

    /// One that was stored before lies in another tier now.
    void stored(const TieredBlock& block);
    /// It is in none of the tiers any more.
    void removed(const kv::BlockKey& key);

    /// Names this life of the tiers; no other has the same.
    [[nodiscard]] const std::string& epoch() const { return epoch_; }
    /// The number that the next event will have.
    [[nodiscard]] std::uint64_t next() const;
    /// Whether the events from number `from` on are still kept.
    [[nodiscard]] bool reaches(std::uint64_t from) const;
    /// So many events may come before those from `from` on are no longer kept.
    [[nodiscard]] std::uint64_t room(std::uint64_t from) const;

    /// At most `most` of the events from number `from` on, which are kept; runs of one chain share an
    /// entry. `next` of the page is where the following ones start.
    [[nodiscard]] port::KvEventPage since(std::uint64_t from, std::size_t most) const;

    /// Calls `work` once, on the thread that brings the next event.
    void on_next(std::function<void()> work);

private:
    struct Record {
        kv::NamedBlock block;
        std::string_view tier;  ///< Empty: removed.
    };
    void add(const Record& record);

    std::string epoch_;
    mutable std::mutex mutex_;
    std::vector<Record> ring_;
    std::uint64_t next_ = 0;
    std::function<void()> on_next_;
};

/// Adds a name to the end of a list of events, to the last one if it goes on from there.
void append_stored(std::vector<port::KvEvent>& events, const TieredBlock& block);

}  // namespace sluice::kvnode
