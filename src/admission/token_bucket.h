#pragma once

// A rate limit: so many units a minute, of which a minute's worth may come at once.
//
// The level may fall below zero, when a request cost more than was reserved; then what follows waits
// until the debt is paid. An amount above the capacity is granted by a full bucket, which then is in
// debt: a request larger than a minute's worth is slow, but not impossible.

#include <chrono>

namespace sluice::admission {

/// A point in time of whatever clock the caller has; only differences matter.
using Instant = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

class TokenBucket {
public:
    /// `per_minute` 0 is no limit. Full at first.
    explicit TokenBucket(double per_minute) : capacity_(per_minute), level_(per_minute) {}

    /// How long until `amount` can be taken; zero if it can be now.
    [[nodiscard]] Duration wait(double amount, Instant now) const;

    /// Takes `amount`, whatever the level: ask `wait` first. Negative amounts give back.
    void take(double amount, Instant now);

private:
    [[nodiscard]] double level_at(Instant now) const;

    double capacity_;
    double level_;
    Instant filled_{};  ///< When `level_` was right.
};

}  // namespace sluice::admission
