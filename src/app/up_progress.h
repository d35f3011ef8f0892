#pragma once

// Says on stderr what is being waited for, but only to somebody who waits longer than a second: on a
// terminal in one line that is rewritten and goes away, elsewhere a line now and then.

#include <chrono>
#include <string_view>

namespace sluice::app {

class WaitLine {
public:
    /// How often `show` should be called.
    static constexpr std::chrono::milliseconds kTick{1'000};

    WaitLine();
    WaitLine(const WaitLine&) = delete;
    WaitLine& operator=(const WaitLine&) = delete;
    ~WaitLine();

    void show(std::string_view what);

private:
    using Clock = std::chrono::steady_clock;

    bool terminal_;
    bool shown_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point next_ = start_ + kTick;
};

}  // namespace sluice::app
