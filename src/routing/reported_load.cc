#include "routing/reported_load.h"

#include <algorithm>
#include <chrono>

namespace sluice::routing {
namespace {

/// Reports come every second; after some that are missing, they are late.
constexpr Time::duration kFreshTime = std::chrono::seconds(5);

}  // namespace

void ReportedLoad::take(const Report& report, const Load& ours, std::uint64_t kv_capacity,
                        Time now) {
    const std::uint32_t beyond = report.requests - std::min(report.requests, ours.requests);
    // Requests that end while the report is on its way look foreign, but not twice in a row.
    foreign_.requests = reported_ ? std::min(beyond, previous_) : beyond;
    previous_ = beyond;
    const double share = std::clamp(report.kv_share, 0.0, 1.0);
    const auto used = static_cast<std::uint64_t>(share * static_cast<double>(kv_capacity));
    foreign_.kv_tokens = foreign_.requests > 0 ? used - std::min(used, ours.kv_tokens) : 0;
    fresh_until_ = now + kFreshTime;
    reported_ = true;
}

}  // namespace sluice::routing
