#pragma once

// Whether a worker is given requests, and how large its share is, judged by how its requests went.
//
// A client's mistake says nothing about the worker. Backpressure (429, 503) halves its share, which
// grows back by itself: it is busy, not dead. A worker that refuses what is right, stalls, or fails
// so often without a success between is taken out; after a rest it gets one request on trial. A
// success brings it back, a failure sends it away for longer. One that is new or returns begins with
// a small share, so that a cold cache and a cold engine are not the busiest of all.
//
// Not thread-safe.

#include <chrono>
#include <cstdint>
#include <string_view>

#include "routing/time.h"

namespace sluice::routing {

/// How a leg went, as far as it says something about its worker.
enum class LegResult : std::uint8_t {
    kSuccess,
    kClientError,    ///< The request itself was wrong.
    kFull,           ///< No room: 429, 503.
    kMisconfigured,  ///< It does not take our key, or does not know what it should: 401, 404.
    kFailed,         ///< Not reached, cut off, or an error of its own.
    kStalled,        ///< No token computed for too long, whatever /health says.
};

class Health {
public:
    enum class Breaker : std::uint8_t {
        kClosed,
        kOpen,      ///< Takes no requests.
        kHalfOpen,  ///< Takes one, on trial.
    };

    /// It became ready, for the first time or again.
    void on_ready(Time now);
    /// `began` is when the leg did: of legs that ran side by side and fail together, as they do when
    /// a process dies, one counts.
    void on_result(LegResult result, Time began, Time now);
    /// Another process answers now: what the one before it did counts no more.
    void on_restart() { *this = {}; }
    /// As if a request had failed for the last time: what shares its fate did.
    void trip(Time now);
    /// A request was given to it.
    void on_pick(Time now);

    [[nodiscard]] bool takes_requests(Time now) const {
        return !tripped_ || (now >= open_until_ && now >= trial_until_);
    }
    [[nodiscard]] Breaker breaker(Time now) const;
    /// When an open breaker lets one through; in the past if it is not open.
    [[nodiscard]] Time open_until() const { return open_until_; }

    /// What backpressure left of its share, in (0, 1].
    [[nodiscard]] double pressure(Time now) const {
        return settled_at_ <= now ? 1.0 : recovered(now);
    }
    /// What a worker that is new, or is back, has of its share, in (0, 1].
    [[nodiscard]] double ramp(Time now) const { return settled_at_ <= now ? 1.0 : grown(now); }

private:
    [[nodiscard]] double recovered(Time now) const;
    [[nodiscard]] double grown(Time now) const;
    void settle();

    std::uint32_t failures_ = 0;    ///< Since the last success.
    Time failed_at_ = Time::min();  ///< The last that counted.
    bool tripped_ = false;
    Time open_until_{};
    Time trial_until_{};
    Time::duration rest_{0};
    Time ramp_from_{};
    double pressure_ = 1.0;  ///< Share that backpressure left at `pressure_at_`.
    Time pressure_at_{};
    Time settled_at_{};  ///< From then on both are 1.
};

/// "closed", "open", "half_open"
[[nodiscard]] std::string_view to_string(Health::Breaker breaker);

}  // namespace sluice::routing
