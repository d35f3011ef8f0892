#include "admission/service_rate.h"

#include <algorithm>
#include <cmath>

namespace sluice::admission {
namespace {

/// How far the mean looks back.
constexpr double kMemorySeconds = 10.0;
/// Less than this says nothing.
constexpr double kLeastSeconds = 0.25;
constexpr std::chrono::milliseconds kMoment{10};
/// How many requests the times of service look back on.
constexpr std::uint32_t kMemoryRequests = 64;

}  // namespace

ServiceRate::Seen ServiceRate::seen_at(Instant now) const {
    if (!busy_ || now <= updated_) return seen_;
    const double elapsed = std::chrono::duration<double>(now - updated_).count();
    const double kept = std::exp(-elapsed / kMemorySeconds);
    // The integral of the same decay over the time that passed.
    return {.tokens = seen_.tokens * kept,
            .seconds = seen_.seconds * kept + kMemorySeconds * (1.0 - kept)};
}

void ServiceRate::busy(bool is_busy, Instant now) {
    seen_ = seen_at(now);
    updated_ = now;
    if (busy_ && !is_busy) idle_since_ = now;
    busy_ = is_busy;
}

void ServiceRate::took(double cost, Instant now) {
    // The last place falls free a moment before the next request takes it.
    if (!busy_ && (!idle_since_ || now - *idle_since_ > kMoment)) return;
    seen_ = seen_at(now);
    updated_ = now;
    seen_.tokens += cost;
}

std::optional<double> ServiceRate::tokens_per_second(Instant now) const {
    const Seen seen = seen_at(now);
    if (seen.seconds < kLeastSeconds || seen.tokens <= 0) return std::nullopt;
    return seen.tokens / seen.seconds;
}

void ServiceRate::ran(double seconds) {
    ended_ = std::min(ended_ + 1, kMemoryRequests);
    const double off = seconds - mean_seconds_;
    mean_seconds_ += off / ended_;
    variance_ += (off * (seconds - mean_seconds_) - variance_) / ended_;
}

double ServiceRate::long_seconds() const { return mean_seconds_ + 2 * std::sqrt(variance_); }

}  // namespace sluice::admission
