#pragma once

// Time as routing sees it: an argument, so that a simulator's clock is as good as the real one.

#include <chrono>

namespace sluice::routing {

using Time = std::chrono::steady_clock::time_point;

/// Of a span, in seconds.
[[nodiscard]] inline double seconds(Time::duration span) {
    return std::chrono::duration<double>(span).count();
}

}  // namespace sluice::routing
