#include "kv/tier_speed.h"

#include <algorithm>

namespace sluice::kv {
namespace {

/// What the newest measurement counts in an average.
constexpr double kNewest = 0.25;

void average(double& value, double now) { value += (now - value) * kNewest; }

}  // namespace

TierSpeed::Duration TierSpeed::predict(std::size_t bytes) const {
    return Duration(
        static_cast<Duration::rep>(round_trip_ + byte_time_ * static_cast<double>(bytes)));
}

void TierSpeed::asked(Duration took, Time now) {
    asked_ = now;
    average(round_trip_, static_cast<double>(std::max<Duration::rep>(took.count(), 0)));
}

void TierSpeed::loaded(std::size_t bytes, Duration took, Time now) {
    loaded_ = now;
    if (bytes == 0) return asked(took, now);
    const double rest = static_cast<double>(took.count()) - round_trip_;
    average(byte_time_, std::max(rest, 0.0) / static_cast<double>(bytes));
}

}  // namespace sluice::kv
