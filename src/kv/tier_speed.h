#pragma once

// How long it takes to load from a tier, by what loads took before: a time for asking, and a time for
// each byte. Knows no clock.

#include <chrono>
#include <cstddef>
#include <optional>

namespace sluice::kv {

class TierSpeed {
public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::nanoseconds;

    /// What is taken for true before anything was measured; better too fast than too slow, for what
    /// is never tried is never measured.
    explicit TierSpeed(Duration round_trip = std::chrono::milliseconds(1),
                       double bytes_per_second = 1e9)
        : round_trip_(static_cast<double>(round_trip.count())),
          byte_time_(1e9 / bytes_per_second) {}

    [[nodiscard]] Duration predict(std::size_t bytes) const;
    [[nodiscard]] Duration round_trip() const {
        return Duration(static_cast<Duration::rep>(round_trip_));
    }

    void asked(Duration took, Time now);
    /// A load that brought `bytes`. None: it was in vain, and shows how long asking takes.
    void loaded(std::size_t bytes, Duration took, Time now);

    /// Nothing was loaded for so long that what is known may be out of date.
    [[nodiscard]] bool stale(Time now) const { return is_old(loaded_, now); }
    /// Nobody asked for so long that the time of asking may be.
    [[nodiscard]] bool round_trip_is_stale(Time now) const { return is_old(asked_, now); }

private:
    static constexpr std::chrono::seconds kStale{30};

    [[nodiscard]] static bool is_old(const std::optional<Time>& measured, Time now) {
        return !measured || now - *measured > kStale;
    }

    double round_trip_;  ///< Nanoseconds.
    double byte_time_;   ///< Nanoseconds.
    std::optional<Time> asked_;
    std::optional<Time> loaded_;
};

}  // namespace sluice::kv
