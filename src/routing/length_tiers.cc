#include "routing/length_tiers.h"

#include <algorithm>
#include <cmath>

namespace sluice::routing {
namespace {

/// In which the work of the past fades to a third.
constexpr double kMemorySeconds = 30.0;
/// A tier with less work than this has none.
constexpr double kLeastWork = 64.0;

}  // namespace

double LengthTiers::faded(Time now) const {
    return std::exp(-std::max(0.0, seconds(now - at_)) / kMemorySeconds);
}

void LengthTiers::on_pick(std::uint64_t tokens, double work, Time now) {
    const double left = faded(now);
    for (double& each : work_) each *= left;
    at_ = std::max(at_, now);
    work_[tier_of(tokens)] += work;
}

std::array<std::uint32_t, LengthTiers::kTiers> LengthTiers::kept_for_shorter(std::uint32_t workers,
                                                                             Time now) const {
    std::array<std::uint32_t, kTiers> first{};
    if (workers < 2) return first;
    const double left = faded(now);
    double total = 0.0;
    for (const double each : work_) total += each;
    double below = 0.0;
    for (int tier = 1; tier < kTiers; ++tier) {
        const double shorter = work_[tier - 1];
        below += shorter;
        std::uint32_t kept = first[tier - 1];
        if (shorter * left >= kLeastWork) {
            // At least one more, rounded down: the shorter ones may run beyond it, too.
            kept = std::max(kept + 1, static_cast<std::uint32_t>(workers * below / total));
        }
        first[tier] = std::min(kept, workers - 1);
    }
    return first;
}

}  // namespace sluice::routing
