#pragma once

// Tells an engine that is stuck from one that is busy: it has requests, and no step of it ends.

#include <chrono>
#include <cstdint>

#include "engine/engine.h"

namespace sluice::worker {

class StepWatch {
public:
    using Time = std::chrono::steady_clock::time_point;

    explicit StepWatch(std::chrono::milliseconds patience) : patience_(patience) {}

    /// What the engine says of itself at `now`. True if it has had requests since an earlier look
    /// that is at least `patience` ago, and ended no step since.
    [[nodiscard]] bool stuck(const engine::EngineStats& stats, Time now) {
        // Not what runs or waits as of the last step: a first step that never ends reports nothing.
        const bool idle = stats.live == 0;
        if (idle || stats.steps != steps_ || !watching_) {
            watching_ = !idle;
            steps_ = stats.steps;
            since_ = now;
        }
        return watching_ && now - since_ >= patience_;
    }

private:
    std::chrono::milliseconds patience_;
    bool watching_ = false;  ///< There are requests.
    std::uint64_t steps_ = 0;
    Time since_;  ///< Of the first look with these steps.
};

}  // namespace sluice::worker
