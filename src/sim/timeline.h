#pragma once

// How much came in each stretch of time, in bounded memory: when a run gets long, stretches are joined
// in pairs.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/event_queue.h"

namespace sluice::sim {

class Timeline {
public:
    static constexpr std::size_t kStretches = 2'048;

    struct Stretch {
        std::uint64_t tokens = 0;   ///< Of answers, as clients get them.
        std::uint64_t arrived = 0;  ///< Requests.
        std::uint64_t completed = 0;
        std::uint64_t failed = 0;  ///< That ended otherwise.
    };

    /// Of the stretch that `time` is in; valid until the next call.
    [[nodiscard]] Stretch& at(Time time);

    [[nodiscard]] std::span<const Stretch> stretches() const { return stretches_; }
    /// How long each is: a second, or that times a power of two.
    [[nodiscard]] Duration width() const { return width_; }

private:
    void join_pairs();

    Duration width_ = std::chrono::seconds(1);
    std::vector<Stretch> stretches_;
};

}  // namespace sluice::sim
