#pragma once

// The three quantiles that every report of this project shows.

#include <boost/json/object.hpp>
#include <optional>

#include "base/latency_sketch.h"
#include "record/statistics.h"

namespace sluice::record {

/// Milliseconds; absent where nothing was measured.
struct Percentiles {
    std::optional<double> p50;
    std::optional<double> p90;
    std::optional<double> p99;
};

/// Of samples in milliseconds.
[[nodiscard]] Percentiles percentiles(const Samples& samples);
[[nodiscard]] Percentiles percentiles(const LatencySketch& sketch);

/// {"p50","p90","p99"}; null where nothing was measured.
[[nodiscard]] boost::json::object to_object(const Percentiles& percentiles);

}  // namespace sluice::record
