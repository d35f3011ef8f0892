#pragma once

// Plots of one or several runs, as pictures by themselves and as one page that needs nothing else.

#include <string>
#include <vector>

#include "sim/results.h"
#include "sim/sim_report.h"

namespace sluice::sim {

struct RunResult {
    RunTitle title;
    Results results;
};

/// How many requests had their first token by when, a curve a run; a complete SVG file. Requests that
/// failed never had it: their curve ends below 100 %.
[[nodiscard]] std::string ttft_svg(const std::vector<RunResult>& runs);
/// Tokens a second over time, a curve a run; a complete SVG file.
[[nodiscard]] std::string throughput_svg(const std::vector<RunResult>& runs);
/// Both, with the numbers.
[[nodiscard]] std::string to_html(const std::vector<RunResult>& runs);

}  // namespace sluice::sim
