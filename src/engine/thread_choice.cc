#include "engine/thread_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace sluice::engine {
namespace {

/// What a larger number of threads must beat: the best time so far, less 5 %.
constexpr double kWorthMoreThreads = 0.95;
constexpr std::array<std::size_t, 3> kRows = {1, 16, 256};

std::size_t fastest(std::size_t threads_max, std::size_t rows,
                    const ThreadChoice::TimeStep& time_step) {
    std::size_t best = 1;
    auto best_time = static_cast<double>(time_step(rows, 1).count());
    for (std::size_t threads = 2; threads / 2 < threads_max; threads *= 2) {
        const std::size_t candidate = std::min(threads, threads_max);
        const auto time = static_cast<double>(time_step(rows, candidate).count());
        if (time >= kWorthMoreThreads * best_time) continue;
        best = candidate;
        best_time = time;
    }
    return best;
}

}  // namespace

ThreadChoice ThreadChoice::fixed(std::size_t threads) {
    ThreadChoice choice;
    choice.entries_.push_back({.rows = 1, .threads = threads});
    return choice;
}

ThreadChoice ThreadChoice::measure(std::size_t threads_max, std::size_t rows_max,
                                   const TimeStep& time_step) {
    SLUICE_ASSERT(threads_max >= 1 && rows_max >= 1);
    ThreadChoice choice;
    choice.is_measured_ = threads_max > 1;
    if (threads_max == 1) return fixed(1);
    for (const std::size_t rows : kRows) {
        const std::size_t size = std::min(rows, rows_max);
        if (!choice.entries_.empty() && size == choice.entries_.back().rows) break;
        choice.entries_.push_back({.rows = size, .threads = fastest(threads_max, size, time_step)});
    }
    return choice;
}

std::size_t ThreadChoice::threads_for(std::size_t rows) const {
    std::size_t threads = entries_.front().threads;
    for (const Entry& entry : entries_)
        if (entry.rows <= rows) threads = entry.threads;
    return threads;
}

std::size_t ThreadChoice::most() const {
    return std::ranges::max(entries_, {}, &Entry::threads).threads;
}

std::string ThreadChoice::to_string() const {
    if (!is_measured_) return fmt::format("{}", entries_.front().threads);
    std::string text = "auto:";
    for (const Entry& entry : entries_) {
        text += fmt::format("{} {} from {} row{}", &entry == &entries_.front() ? "" : ",",
                            entry.threads, entry.rows, entry.rows == 1 ? "" : "s");
    }
    return text;
}

std::chrono::nanoseconds median_time(const std::function<void()>& step) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t kMost = 15;
    const auto first = Clock::now();
    step();
    const auto start = Clock::now();
    // What takes long is hardly disturbed, and a large model must not wait for its start.
    const std::size_t least = start - first > std::chrono::milliseconds(50) ? 1 : 3;
    std::vector<std::chrono::nanoseconds> times;
    while (times.size() < least ||
           (times.size() < kMost && Clock::now() - start < std::chrono::milliseconds(10))) {
        const auto before = Clock::now();
        step();
        times.push_back(Clock::now() - before);
    }
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
    return times[times.size() / 2];
}

}  // namespace sluice::engine
