#pragma once

// The last names that came into an engine's pool and went, numbered from the engine's start. Bounded:
// who is further behind than the log reaches starts from a snapshot.
//
// Threads: the engine's writes, the loop's reads. Nothing is allocated after the start but what
// `since` returns.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "engine/block_observer.h"
#include "port/kv_events.h"

namespace sluice::worker {

class KvEventLog : public engine::BlockObserver {
public:
    /// Keeps the last `capacity` events.
    explicit KvEventLog(std::size_t capacity);

    void stored(const engine::NamedBlock& block) override;
    void removed(const kv::BlockKey& key) override;

    /// Names this life of the pool; no other has the same.
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
        engine::NamedBlock block;
        bool is_stored = false;
    };
    void add(const Record& record);

    std::string epoch_;
    mutable std::mutex mutex_;
    std::vector<Record> ring_;
    std::uint64_t next_ = 0;
    std::function<void()> on_next_;
};

/// Adds a name to the end of a list of events, to the last one if it goes on from there.
void append_stored(std::vector<port::KvEvent>& events, const engine::NamedBlock& block);

}  // namespace sluice::worker
