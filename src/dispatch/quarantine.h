#pragma once

// Prompts that have cost more workers than one request may: they are not tried again for a while, so
// that a client that repeats one does not take the whole service down, worker by worker.
//
// Bounded; beyond that the oldest is forgotten.

#include <chrono>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "base/limits.h"

namespace sluice::dispatch {

class Quarantine {
public:
    using Time = std::chrono::steady_clock::time_point;

    explicit Quarantine(
        std::size_t prompts_max = limits::kQuarantinedPrompts,
        std::chrono::seconds time = std::chrono::seconds(limits::kQuarantineSeconds))
        : prompts_max_(prompts_max), time_(time) {}

    /// From now on, for the whole time.
    void add(std::uint64_t prompt, Time now);
    [[nodiscard]] bool holds(std::uint64_t prompt, Time now);
    /// As of the last call.
    [[nodiscard]] std::size_t size() const { return until_.size(); }

private:
    void forget_old(Time now);

    std::size_t prompts_max_;
    std::chrono::seconds time_;
    std::unordered_map<std::uint64_t, Time> until_;
    /// In order of their ends. One that was added again has an older entry, too, which is then passed
    /// over.
    std::deque<std::pair<Time, std::uint64_t>> ends_;
};

}  // namespace sluice::dispatch
