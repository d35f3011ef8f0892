#pragma once

// Small plots as inline SVG. Colours are classes ("baseline", "candidate", "axis", "grid"), which the
// page's style sheet gives meaning to, in light and in dark.

#include <string>
#include <vector>

#include "record/statistics.h"

namespace sluice::record {

/// Share of requests that were at most so slow.
struct Curve {
    std::string style;  ///< A CSS class.
    std::string label;
    struct Point {
        double ms;
        double share;
    };
    std::vector<Point> points;  ///< Ascending in both.
};

/// Cumulative distributions over a logarithmic axis of time; empty if no curve has a point.
[[nodiscard]] std::string plot_distributions(const std::string& title,
                                             const std::vector<Curve>& curves);

/// One dot with its interval per line.
struct Estimate {
    std::string style;
    std::string label;
    std::string value;
    double share = 0.0;
    Interval interval;
};

/// Shares between 0 and 1 below each other; the axis begins where the lowest interval does.
[[nodiscard]] std::string plot_shares(const std::string& title,
                                      const std::vector<Estimate>& estimates);

}  // namespace sluice::record
