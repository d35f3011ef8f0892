#pragma once

// Where the engine's thread says, after each step, how it stands, and any other thread reads it.

#include <chrono>
#include <cstddef>
#include <mutex>

#include "engine/step_forecast.h"

namespace sluice::engine {

/// A snapshot; counters only grow.
struct EngineStats {
    std::size_t running = 0;  ///< As of the last step, as all but `live` is.
    std::size_t waiting = 0;
    std::size_t live = 0;            ///< Requests that came and have not ended, at this moment.
    std::size_t pending_tokens = 0;  ///< Of prompts, not computed yet.
    std::size_t blocks_held = 0;
    std::size_t blocks_kept = 0;
    std::size_t blocks = 0;
    std::uint64_t cached_tokens = 0;
    std::uint64_t evictions = 0;
    std::uint64_t preemptions = 0;
    std::uint64_t steps = 0;
    std::uint64_t computed_tokens = 0;
    std::uint64_t prepared =
        0;  ///< Requests that came while a step computed, and were queued then.
};

class StatsBoard {
public:
    explicit StatsBoard(const StepForecast& cost) : cost_(cost) {}

    void publish(const EngineStats& stats, const StepForecast& cost);
    [[nodiscard]] EngineStats stats() const;

    /// How long it takes to compute `count` tokens behind `first` others in chunks of `chunk`, and
    /// nothing else.
    [[nodiscard]] std::chrono::nanoseconds prefill_time(std::size_t first, std::size_t count,
                                                        std::size_t chunk) const;

private:
    mutable std::mutex mutex_;
    EngineStats stats_;
    StepForecast cost_;
};

}  // namespace sluice::engine
