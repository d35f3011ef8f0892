#pragma once

// How far a batch run is, on stderr: a bar that stays in its line on a terminal, else a line every few
// seconds, so that a log stays readable.

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::app {

struct RunCounts {
    std::uint64_t rows = 0;     ///< Answered by this run, errors included.
    std::uint64_t failed = 0;   ///< Of those, and of rows that were left out.
    std::uint64_t skipped = 0;  ///< Done by an earlier run.
    std::uint64_t prompt_tokens = 0;
    std::uint64_t output_tokens = 0;
};

class RunProgress {
public:
    /// `total_bytes` of input; 0 if unknown, then there is no bar.
    explicit RunProgress(std::uint64_t total_bytes);

    /// Shows the state if it is time to. Tokens count as they come, rows when they are written.
    void update(const RunCounts& counts, std::uint64_t bytes_read);

    /// Removes the bar, so that other lines can be written.
    void clear();

    [[nodiscard]] double seconds() const;

private:
    [[nodiscard]] std::string line(const RunCounts& counts, std::uint64_t bytes_read) const;

    using Clock = std::chrono::steady_clock;

    std::uint64_t total_bytes_;
    bool terminal_;
    bool shown_ = false;
    Clock::time_point start_;
    Clock::time_point next_;
};

/// "12 rows (1 failed, 3 done before), 345 tokens, 67.8 tokens/s"
[[nodiscard]] std::string summary(const RunCounts& counts, double seconds);

}  // namespace sluice::app
