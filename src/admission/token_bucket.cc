#include "admission/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace sluice::admission {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr double kMinute = 60.0;

}  // namespace

double TokenBucket::level_at(Instant now) const {
    if (now <= filled_) return level_;
    const double seconds = Seconds(now - filled_).count();
    return std::min(capacity_, level_ + capacity_ * seconds / kMinute);
}

Duration TokenBucket::wait(double amount, Instant now) const {
    if (capacity_ <= 0) return Duration::zero();
    const double missing = std::min(amount, capacity_) - level_at(now);
    if (missing <= 0) return Duration::zero();
    // Up to half a nanosecond short counts as enough, here and when asked again after the wait.
    const double nanoseconds = missing / capacity_ * kMinute * 1e9;
    return Duration(static_cast<std::int64_t>(std::ceil(nanoseconds - 0.5)));
}

void TokenBucket::take(double amount, Instant now) {
    if (capacity_ <= 0) return;
    level_ = std::min(capacity_, level_at(now) - amount);
    filled_ = std::max(filled_, now);
}

}  // namespace sluice::admission
