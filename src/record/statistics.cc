#include "record/statistics.h"

#include <algorithm>
#include <cmath>

namespace sluice::record {

void Samples::add(double value, std::uint64_t weight) {
    values_.push_back({value, weight});
    sorted_ = false;
    weight_ += weight;
    squares_ += static_cast<double>(weight) * static_cast<double>(weight);
}

double Samples::effective_size() const {
    if (empty()) return 0.0;
    const auto sum = static_cast<double>(weight_);
    return sum * sum / squares_;
}

void Samples::sort() const {
    if (sorted_) return;
    std::ranges::sort(values_, {}, &Value::value);
    sorted_ = true;
}

std::optional<double> Samples::quantile(double share) const {
    if (empty()) return std::nullopt;
    sort();
    const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(weight_)));
    std::uint64_t seen = 0;
    for (const Value& each : values_) {
        seen += each.weight;
        if (seen >= rank) return each.value;
    }
    return values_.back().value;
}

std::optional<Interval> Samples::quantile_interval(double share, double z) const {
    if (empty()) return std::nullopt;
    const double size = effective_size();
    const double reach = z * std::sqrt(share * (1.0 - share) / size);
    // Half a sample outwards, as ranks are whole.
    const double low = share - reach - 0.5 / size;
    const double high = share + reach + 0.5 / size;
    if (low <= 0.0 || high >= 1.0) return std::nullopt;
    return Interval{.low = *quantile(low), .high = *quantile(high)};
}

Interval wilson_interval(double part, double whole, double z) {
    if (whole <= 0.0) return {.low = 0.0, .high = 1.0};
    const double share = part / whole;
    const double z2 = z * z;
    const double centre = share + z2 / (2.0 * whole);
    const double reach = z * std::sqrt(share * (1.0 - share) / whole + z2 / (4.0 * whole * whole));
    const double scale = 1.0 + z2 / whole;
    return {.low = std::max(0.0, (centre - reach) / scale),
            .high = std::min(1.0, (centre + reach) / scale)};
}

Interval difference_interval(double first_part, double first_whole, double second_part,
                             double second_whole, double z) {
    if (first_whole <= 0.0 || second_whole <= 0.0) return {.low = -1.0, .high = 1.0};
    const double first = first_part / first_whole;
    const double second = second_part / second_whole;
    const Interval a = wilson_interval(first_part, first_whole, z);
    const Interval b = wilson_interval(second_part, second_whole, z);
    const double difference = second - first;
    return {.low = difference - std::hypot(second - b.low, a.high - first),
            .high = difference + std::hypot(b.high - second, first - a.low)};
}

}  // namespace sluice::record
