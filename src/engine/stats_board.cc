#include "engine/stats_board.h"

#include <algorithm>

namespace sluice::engine {

void StatsBoard::publish(const EngineStats& stats, const StepForecast& cost) {
    const std::lock_guard lock(mutex_);
    stats_ = stats;
    cost_ = cost;
}

EngineStats StatsBoard::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

std::chrono::nanoseconds StatsBoard::prefill_time(std::size_t first, std::size_t count,
                                                  std::size_t chunk) const {
    std::unique_lock lock(mutex_);
    const StepForecast cost = cost_;
    lock.unlock();
    std::chrono::nanoseconds time{};
    while (count > 0) {
        StepWork work;
        work.add_rows(first, std::min(count, chunk));
        work.logits = work.rows == count ? 1 : 0;
        time += cost.predict(work);
        first += work.rows;
        count -= work.rows;
    }
    return time;
}

}  // namespace sluice::engine
