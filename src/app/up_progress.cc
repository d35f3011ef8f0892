#include "app/up_progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace sluice::app {

namespace {
constexpr std::chrono::seconds kBetweenLines{10};
constexpr const char* kEraseLine = "\r\x1b[K";
}  // namespace

WaitLine::WaitLine() : terminal_(::isatty(STDERR_FILENO) != 0) {}

WaitLine::~WaitLine() {
    if (terminal_ && shown_) std::fputs(kEraseLine, stderr);
}

void WaitLine::show(std::string_view what) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + (terminal_ ? std::chrono::nanoseconds(kTick) : kBetweenLines);
    shown_ = true;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
    fmt::print(stderr, "{}{} ({} s){}", terminal_ ? kEraseLine : "", what, seconds,
               terminal_ ? "" : "\n");
    std::fflush(stderr);
}

}  // namespace sluice::app
