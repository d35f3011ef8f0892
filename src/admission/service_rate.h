#pragma once

// How fast the service takes work from its queue, in tokens a second, and how long it works on a
// request, as seen over the last seconds in
// which there was work to take. Idle time says nothing about speed, so it doesn't count; nor does the
// time in which nothing runs at all, as while the first worker loads its model.

#include <cstdint>
#include <optional>

#include "admission/token_bucket.h"

namespace sluice::admission {

class ServiceRate {
public:
    /// From `now` on there is work that waits behind work that runs, or there isn't.
    void busy(bool is_busy, Instant now);

    /// `cost` tokens of work were taken. Counts only while busy.
    void took(double cost, Instant now);

    /// Nullopt until enough was seen to tell.
    [[nodiscard]] std::optional<double> tokens_per_second(Instant now) const;

    /// A request that ran this long has ended.
    void ran(double seconds);
    [[nodiscard]] double mean_seconds() const { return mean_seconds_; }
    /// Longer than most requests run: two standard deviations above the mean.
    [[nodiscard]] double long_seconds() const;

private:
    struct Seen {
        double tokens = 0;
        double seconds = 0;
    };
    [[nodiscard]] Seen seen_at(Instant now) const;

    Seen seen_;  ///< Decayed sums, right at `updated_`.
    Instant updated_{};
    std::optional<Instant> idle_since_;
    bool busy_ = false;
    double mean_seconds_ = 0;
    double variance_ = 0;
    std::uint32_t ended_ = 0;
};

}  // namespace sluice::admission
