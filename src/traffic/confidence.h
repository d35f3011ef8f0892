#pragma once

// What can be said of a share after so many observations.
//
// The bounds are Chernoff's: the true share lies beyond one with a probability of at most `alpha`,
// for any number of observations (Hoeffding 1963, theorem 1). Requests that come close together
// share their fate - one stall slows a queue of them - so the number of observations counts for less
// where they cluster in time: Kish's design effect, measured over spans of one second.

#include <chrono>
#include <cstdint>

namespace sluice::traffic {

/// `events` out of `trials`; both may be fractions of what was seen.
struct Tally {
    double events = 0.0;
    double trials = 0.0;
    [[nodiscard]] double share() const { return trials > 0.0 ? events / trials : 0.0; }
};

/// The least share that is believable; 0 without trials. 0 < alpha < 1.
[[nodiscard]] double lower_bound(const Tally& tally, double alpha);
/// The largest one; 1 without trials.
[[nodiscard]] double upper_bound(const Tally& tally, double alpha);

/// Counts what happens in the order of time.
class ClusteredTally {
public:
    void add(std::chrono::steady_clock::time_point at, bool event);

    [[nodiscard]] std::uint64_t trials() const { return trials_; }
    [[nodiscard]] std::uint64_t events() const { return events_; }
    /// How many observations one observation's worth of knowledge took; at least 1.
    [[nodiscard]] double design_effect() const;
    /// As many trials as would have told the same had they been independent.
    [[nodiscard]] Tally effective() const;

private:
    struct Span {
        double trials = 0.0;
        double events = 0.0;
    };

    /// Moves the current span into the sums below.
    static void close(const Span& span, double& trials2, double& events2, double& product);

    std::chrono::steady_clock::time_point span_end_;
    Span span_;
    std::uint64_t spans_ = 0;
    std::uint64_t trials_ = 0;
    std::uint64_t events_ = 0;
    // Over all spans but the current one: sums of trials^2, events^2, trials * events.
    double trials2_ = 0.0;
    double events2_ = 0.0;
    double product_ = 0.0;
};

}  // namespace sluice::traffic
