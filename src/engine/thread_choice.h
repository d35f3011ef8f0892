#pragma once

// How many threads a step uses. More are not always faster: they wait for each other at every product,
// and a step that reads memory at full speed gains nothing. The bits are the same with any number, so it
// is chosen by the size of the step, from what was measured on this machine with this model.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sluice::engine {

class ThreadChoice {
public:
    /// Time of one step of `rows` rows with `threads` threads.
    using TimeStep = std::function<std::chrono::nanoseconds(std::size_t rows, std::size_t threads)>;

    /// `threads` for every step.
    [[nodiscard]] static ThreadChoice fixed(std::size_t threads);

    /// Times steps of 1, 16 and 256 rows, or fewer if a step has fewer, with 1, 2, 4, ... and
    /// `threads_max` threads. More threads are taken only where they are 5 % faster, and sizes in
    /// between get what the nearest smaller one has. Measures nothing for one thread.
    [[nodiscard]] static ThreadChoice measure(std::size_t threads_max, std::size_t rows_max,
                                              const TimeStep& time_step);

    [[nodiscard]] std::size_t threads_for(std::size_t rows) const;
    [[nodiscard]] std::size_t most() const;

    /// For people: "2", or "auto: 1 from 1 row, 2 from 16 rows".
    [[nodiscard]] std::string to_string() const;

private:
    struct Entry {
        std::size_t rows;  ///< From this many on.
        std::size_t threads;
    };

    std::vector<Entry> entries_;  ///< In ascending order; the first is of 1 row.
    bool is_measured_ = false;
};

/// The median of several calls of `step`: as many as fit into about 10 ms, at least three, or one if a
/// call takes 50 ms and more. The first call, which touches memory for the first time, does not count.
[[nodiscard]] std::chrono::nanoseconds median_time(const std::function<void()>& step);

}  // namespace sluice::engine
