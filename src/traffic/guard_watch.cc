#include "traffic/guard_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "traffic/confidence.h"

namespace sluice::traffic {
namespace {

// Of a candidate that is exactly at an absolute limit, once in so many looks; and for both sides of a
// ratio, where an equal pair would have to err on both at once.
constexpr double kAlphaMax = 1e-6;
constexpr double kAlphaPool = 1e-4;
constexpr double kAlphaStable = 1e-3;

/// One number a request, with its time.
struct Value {
    Time at;
    double value = 0.0;
};
using Values = std::vector<Value>;

struct Limit {
    double value = 0.0;
    std::string of_stable;  ///< ", 1.3 times stable's 1.00 s"; empty for an absolute one.
};

Values values_of(GuardMetric metric, const SampleWindow& samples, Time since) {
    Values values;
    if (metric == GuardMetric::kDiffersShare) {
        for (const auto& each : samples.comparisons())
            if (each.at >= since) values.push_back({each.at, each.differs ? 1.0 : 0.0});
        return values;
    }
    for (const auto& [at, attempt] : samples.attempts()) {
        if (at < since) continue;
        if (metric == GuardMetric::kErrorRate) {
            values.push_back({at, attempt.failed ? 1.0 : 0.0});
        } else if (metric == GuardMetric::kInvalidOutputRate) {
            values.push_back({at, attempt.invalid ? 1.0 : 0.0});
        } else if (const auto& time = is_ttft(metric) ? attempt.ttft : attempt.tbt) {
            values.push_back({at, time->count()});
        }
    }
    return values;
}

ClusteredTally count_above(const Values& values, double limit) {
    ClusteredTally tally;
    for (const Value& each : values) tally.add(each.at, each.value > limit);
    return tally;
}

/// The value that `share` of them do not exceed.
double quantile(const Values& values, double share) {
    std::vector<double> sorted;
    sorted.reserve(values.size());
    for (const Value& each : values) sorted.push_back(each.value);
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(rank, sorted.size() - 1));
    std::ranges::nth_element(sorted, at);
    return *at;
}

/// The largest value that the quantile may believably have; nullopt if it could be any.
std::optional<double> largest_quantile(const Values& values, double share, double alpha) {
    const double effect = count_above(values, quantile(values, share)).design_effect();
    const double trials = static_cast<double>(values.size());
    // How many values above a point are still believable if `1 - share` are above the quantile.
    const auto believable = [&](double above) {
        return upper_bound({above / effect, trials / effect}, alpha) <= 1.0 - share;
    };
    if (!believable(0.0)) return std::nullopt;
    double low = 0.0;
    double high = trials * (1.0 - share);
    while (high - low > 0.5) {
        const double middle = 0.5 * (low + high);
        (believable(middle) ? low : high) = middle;
    }
    std::vector<double> sorted;
    sorted.reserve(values.size());
    for (const Value& each : values) sorted.push_back(each.value);
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(low);
    std::ranges::nth_element(sorted, at, std::greater<>());
    return *at;
}

std::string shown(GuardMetric metric, double value) {
    if (quantile_of(metric)) return fmt::format("{:.3g} s", value);
    return fmt::format("{:.3g} %", 100.0 * value);
}

/// The value of the metric as it was seen.
double observed(GuardMetric metric, const Values& values) {
    if (const auto share = quantile_of(metric)) return quantile(values, *share);
    return count_above(values, 0.5).effective().share();
}

/// What the pool must not exceed; nullopt while too little is known of stable.
std::optional<Limit> limit_of(const Guard& guard, const Values& stable) {
    if (guard.max && guard.metric != GuardMetric::kDiffersShare) return Limit{*guard.max, {}};
    const bool measured = stable.size() >= guard.min_samples && !stable.empty();
    // Answers that differ between two copies of the stable pool are noise, whatever the limit says.
    if (guard.max && !measured) return Limit{*guard.max, {}};
    if (!measured) return std::nullopt;
    std::optional<double> most;
    if (const auto share = quantile_of(guard.metric)) {
        most = largest_quantile(stable, *share, kAlphaStable);
    } else {
        most = upper_bound(count_above(stable, 0.5).effective(), kAlphaStable);
    }
    if (!most) return std::nullopt;
    if (guard.max) return Limit{std::max(*guard.max, *most), {}};
    return Limit{
        *guard.max_ratio * *most,
        fmt::format(", which is {} times what stable's can be, {} as seen,", *guard.max_ratio,
                    shown(guard.metric, observed(guard.metric, stable)))};
}

bool exceeds(const Guard& guard, const Values& values, double limit) {
    const double alpha = guard.max ? kAlphaMax : kAlphaPool;
    if (const auto share = quantile_of(guard.metric))
        return lower_bound(count_above(values, limit).effective(), alpha) > 1.0 - *share;
    return lower_bound(count_above(values, 0.5).effective(), alpha) > limit;
}

}  // namespace

std::optional<std::string> GuardWatch::look(const SampleWindow& pool, const SampleWindow& stable,
                                            Time now) {
    if (pool.total() == seen_) return std::nullopt;
    seen_ = pool.total();
    const Values values = values_of(guard_.metric, pool, now - guard_.window);
    const bool enough = values.size() >= guard_.min_samples && !values.empty();
    const std::optional<Limit> limit =
        enough ? limit_of(guard_, values_of(guard_.metric, stable, now - guard_.window))
               : std::nullopt;
    if (!limit || !exceeds(guard_, values, limit->value)) {
        confirmations_ = 0;
        return std::nullopt;
    }
    if (++confirmations_ < kConfirmations) return std::nullopt;
    return fmt::format("{} of {} is {}, above {}{} over {} requests", to_string(guard_.metric),
                       guard_.pool, shown(guard_.metric, observed(guard_.metric, values)),
                       shown(guard_.metric, limit->value), limit->of_stable, values.size());
}

}  // namespace sluice::traffic
