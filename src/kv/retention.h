#pragma once

// How long blocks live from their last use on, by class, and the wall-clock time that kv counts in:
// a life must survive a restart, so no steady clock will do. Time is always an argument.

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/retention.h"

namespace sluice::kv {

using WallTime = std::chrono::system_clock::time_point;
/// Ends never.
inline constexpr WallTime kForever = WallTime::max();

struct RetentionTimes {
    std::chrono::milliseconds agent = std::chrono::hours(72);
    std::chrono::milliseconds chat = std::chrono::hours(168);

    /// Zero: a block of that class isn't kept at all.
    [[nodiscard]] std::chrono::milliseconds of(Retention retention) const;
    /// When a block that is used at `now` ends.
    [[nodiscard]] WallTime end(Retention retention, WallTime now) const {
        return now + of(retention);
    }
    /// What a use may leave unsaid: ends that differ by less are not moved, which saves the work of
    /// moving the whole chain's at each of its blocks.
    [[nodiscard]] std::chrono::milliseconds slack(Retention retention) const {
        return of(retention) / 64;
    }
    bool operator==(const RetentionTimes&) const = default;
};

/// "agent=72h,chat=168h"; a class that isn't named keeps its default. A life is at least a second
/// and at most kRetentionMax.
inline constexpr std::chrono::hours kRetentionMax{24 * 365};
[[nodiscard]] Result<RetentionTimes> parse_retention_times(std::string_view text);
[[nodiscard]] std::string to_string(const RetentionTimes& times);

}  // namespace sluice::kv
