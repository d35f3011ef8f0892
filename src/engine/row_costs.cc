#include "engine/row_costs.h"

#include <algorithm>

namespace sluice::engine {

// One bucket a row up to 16, then four for each doubling.
std::size_t RowCosts::most_rows(std::size_t bucket) {
    if (bucket < 16) return bucket + 1;
    const std::size_t step = (bucket - 16) / 4;
    return (std::size_t{16} << step) + (std::size_t{4} << step) * ((bucket - 16) % 4 + 1);
}

std::size_t RowCosts::bucket_of(std::size_t rows) {
    std::size_t bucket = 0;
    while (bucket + 1 < kBuckets && most_rows(bucket) < rows) ++bucket;
    return bucket;
}

void RowCosts::add(std::size_t rows, double seconds) {
    constexpr double kWeight = 1.0 / 8;
    double& mean = mean_[bucket_of(rows)];
    mean = mean == 0 ? seconds : mean + kWeight * (std::min(seconds, 2 * mean) - mean);
}

bool RowCosts::is_measured(std::size_t rows) const { return mean_[bucket_of(rows)] > 0; }

double RowCosts::estimate(std::size_t rows) const {
    const std::size_t bucket = bucket_of(rows);
    if (mean_[bucket] > 0) return mean_[bucket];
    std::size_t above = bucket;
    while (above < kBuckets && mean_[above] == 0) ++above;
    std::size_t below = bucket;
    while (below > 0 && mean_[below] == 0) --below;
    const auto of = [](std::size_t at) { return static_cast<double>(most_rows(at)); };
    if (mean_[below] == 0) return above < kBuckets ? mean_[above] : 0;
    if (above == kBuckets) return mean_[below] * of(bucket) / of(below);
    const double part = (of(bucket) - of(below)) / (of(above) - of(below));
    return mean_[below] + part * (mean_[above] - mean_[below]);
}

}  // namespace sluice::engine
