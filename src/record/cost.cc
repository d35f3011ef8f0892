#include "record/cost.h"

#include <algorithm>

namespace sluice::record {

double bill(const std::vector<PriceStep>& steps, std::int64_t from_ms, std::int64_t to_ms) {
    constexpr double kMsPerHour = 3'600'000.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const std::int64_t from = std::max(from_ms, steps[i].since_ms);
        const std::int64_t to =
            i + 1 < steps.size() ? std::min(to_ms, steps[i + 1].since_ms) : to_ms;
        if (from < to) sum += steps[i].price_hour * static_cast<double>(to - from) / kMsPerHour;
    }
    return sum;
}

double PoolBill::share(std::chrono::microseconds row_held, std::uint64_t weight) const {
    if (held.count() == 0) return 0.0;
    return bill * static_cast<double>(row_held.count()) * static_cast<double>(weight) /
           static_cast<double>(held.count());
}

}  // namespace sluice::record
