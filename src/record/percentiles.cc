#include "record/percentiles.h"

namespace sluice::record {

Percentiles percentiles(const Samples& samples) {
    return {
        .p50 = samples.quantile(0.5), .p90 = samples.quantile(0.9), .p99 = samples.quantile(0.99)};
}

Percentiles percentiles(const LatencySketch& sketch) {
    const auto at = [&](double share) -> std::optional<double> {
        const auto value = sketch.quantile(share);
        if (!value) return std::nullopt;
        return static_cast<double>(value->count()) / 1e3;
    };
    return {.p50 = at(0.5), .p90 = at(0.9), .p99 = at(0.99)};
}

boost::json::object to_object(const Percentiles& percentiles) {
    const auto value = [](const std::optional<double>& number) {
        return number ? boost::json::value(*number) : boost::json::value(nullptr);
    };
    return {{"p50", value(percentiles.p50)},
            {"p90", value(percentiles.p90)},
            {"p99", value(percentiles.p99)}};
}

}  // namespace sluice::record
