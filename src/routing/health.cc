#include "routing/health.h"

#include <algorithm>
#include <cmath>

namespace sluice::routing {
namespace {

using std::chrono::milliseconds;

/// Failures without a success between them that take a worker out.
constexpr std::uint32_t kFailuresMax = 5;
constexpr Time::duration kFirstRest = milliseconds(2'000);
constexpr Time::duration kLongestRest = milliseconds(60'000);
/// A trial without a result, because its client left, say, is over after this.
constexpr Time::duration kTrialTime = milliseconds(10'000);

constexpr double kLeastShare = 0.1;
constexpr double kShareLoss = 0.5;
constexpr double kShareGain = 1.25;
/// A share that shrank doubles in this time without any request.
constexpr Time::duration kShareDoubles = milliseconds(10'000);

constexpr double kFirstShare = 0.25;
constexpr Time::duration kRamp = milliseconds(10'000);

}  // namespace

void Health::on_ready(Time now) {
    ramp_from_ = now;
    settle();
}

void Health::on_result(LegResult result, Time began, Time now) {
    switch (result) {
        case LegResult::kClientError: return;
        case LegResult::kSuccess:
            failures_ = 0;
            rest_ = {};
            trial_until_ = {};
            if (tripped_) ramp_from_ = now;
            tripped_ = false;
            pressure_ = std::min(1.0, recovered(now) * kShareGain);
            pressure_at_ = now;
            return settle();
        case LegResult::kFull:
            // It answers: a trial that finds it busy has not found it broken.
            trial_until_ = {};
            pressure_ = std::max(kLeastShare, recovered(now) * kShareLoss);
            pressure_at_ = now;
            return settle();
        case LegResult::kMisconfigured:
        case LegResult::kStalled: return trip(now);
        case LegResult::kFailed:
            if (began < failed_at_) return;
            failed_at_ = now;
            ++failures_;
            if (tripped_ || failures_ >= kFailuresMax) trip(now);
            return;
    }
}

void Health::trip(Time now) {
    if (breaker(now) == Breaker::kOpen) return;
    rest_ = std::clamp(rest_ * 2, kFirstRest, kLongestRest);
    open_until_ = now + rest_;
    trial_until_ = {};
    tripped_ = true;
    failures_ = 0;
}

void Health::on_pick(Time now) {
    if (tripped_) trial_until_ = now + kTrialTime;
}

Health::Breaker Health::breaker(Time now) const {
    if (!tripped_) return Breaker::kClosed;
    return now < open_until_ ? Breaker::kOpen : Breaker::kHalfOpen;
}

double Health::recovered(Time now) const {
    if (pressure_ >= 1.0) return 1.0;
    return std::min(1.0,
                    pressure_ * std::exp2(seconds(now - pressure_at_) / seconds(kShareDoubles)));
}

double Health::grown(Time now) const {
    const double share = std::clamp(seconds(now - ramp_from_) / seconds(kRamp), 0.0, 1.0);
    return kFirstShare + (1.0 - kFirstShare) * share;
}

void Health::settle() {
    const double doublings = std::max(0.0, -std::log2(pressure_));
    const auto recovers = std::chrono::duration_cast<Time::duration>(kShareDoubles * doublings);
    settled_at_ = std::max(ramp_from_ + kRamp, pressure_at_ + recovers);
}

std::string_view to_string(Health::Breaker breaker) {
    switch (breaker) {
        case Health::Breaker::kClosed: return "closed";
        case Health::Breaker::kOpen: return "open";
        case Health::Breaker::kHalfOpen: return "half_open";
    }
    return "closed";
}

}  // namespace sluice::routing
