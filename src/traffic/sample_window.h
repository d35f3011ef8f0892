#pragma once

// What was lately seen of one pool: its attempts, and what came of comparing its answers.

#include <chrono>
#include <deque>
#include <optional>

namespace sluice::traffic {

using Time = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;

/// One attempt on a pool, answer or copy, as it ended. What the client did wrong or took back is none.
struct Attempt {
    bool failed = false;          ///< No answer, or a broken one.
    bool invalid = false;         ///< It came, but not in the shape that was asked for.
    std::optional<Seconds> ttft;  ///< From its arrival to its first token.
    std::optional<Seconds> tbt;   ///< Mean gap between its tokens; absent below two tokens.
};

class SampleWindow {
public:
    struct Sample {
        Time at;
        Attempt attempt;
    };
    struct Compared {
        Time at;
        bool differs = false;
    };

    /// In the order of time. Only the last limits::kGuardSamples are kept.
    void add(const Attempt& attempt, Time now);
    void add_comparison(bool differs, Time now);
    /// Forgets what is older.
    void forget_before(Time time);

    [[nodiscard]] const std::deque<Sample>& attempts() const { return attempts_; }
    [[nodiscard]] const std::deque<Compared>& comparisons() const { return comparisons_; }
    /// Ever added, of both kinds.
    [[nodiscard]] std::uint64_t total() const { return total_; }

private:
    std::deque<Sample> attempts_;
    std::deque<Compared> comparisons_;
    std::uint64_t total_ = 0;
};

}  // namespace sluice::traffic
