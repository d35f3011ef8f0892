#pragma once

// Virtual time: a queue of what is to happen, and a clock that jumps from one event to the next.
//
// Events of the same time happen in the order in which they were asked for, so a simulation is a
// function of its input alone: no thread, no wall clock, no order of addresses has a say in it.
//
// A cancelled event leaves its place in the queue until its time comes; its action is freed at once.

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "dispatch/request.h"

namespace sluice::sim {

using Time = dispatch::Time;
using Duration = std::chrono::nanoseconds;

[[nodiscard]] constexpr double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}
[[nodiscard]] constexpr double milliseconds(Duration duration) { return seconds(duration) * 1e3; }
/// Rounded to whole nanoseconds, towards zero.
[[nodiscard]] constexpr Duration from_microseconds(double microseconds) {
    return Duration(static_cast<std::int64_t>(microseconds * 1e3));
}

class EventQueue {
public:
    using Action = std::function<void()>;
    /// Names an event; never given twice.
    using EventId = std::uint64_t;

    /// Starts at the clock's epoch.
    [[nodiscard]] Time now() const { return now_; }

    /// A time that has passed is now.
    EventId at(Time time, Action action);
    EventId after(Duration delay, Action action) { return at(now_ + delay, std::move(action)); }

    /// Takes an event back; nothing happens for one that took place or was cancelled.
    void cancel(EventId id);

    /// Lets the next event happen; false if there is none.
    bool step();

    /// Events that are still to happen.
    [[nodiscard]] std::size_t pending() const { return actions_.size() - free_.size(); }

private:
    struct Entry {
        Time time;
        std::uint64_t serial;
        EventId id;
        bool operator>(const Entry& other) const {
            return time != other.time ? time > other.time : serial > other.serial;
        }
    };
    struct Slot {
        Action action;
        std::uint32_t life = 0;  ///< Counts who had this slot: an old id does not find a new event.
    };

    [[nodiscard]] Slot* find(EventId id);
    Action take(EventId id);

    Time now_{};
    std::uint64_t serial_ = 0;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
    std::vector<Slot> actions_;
    std::vector<std::uint32_t> free_;
};

}  // namespace sluice::sim
