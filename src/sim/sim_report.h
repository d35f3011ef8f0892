#pragma once

// Results as text and as JSON. Both say how much was rejected beside every latency, and neither holds a
// wall time: the same run gives the same bytes.

#include <cstdint>
#include <string>

#include "sim/results.h"

namespace sluice::sim {

/// What a report says of the run that it is about.
struct RunTitle {
    std::string trace;  ///< File or mix.
    std::string policy;
    std::uint32_t workers = 0;
    std::uint64_t seed = 0;
    double speed = 1.0;
};

[[nodiscard]] std::string to_text(const RunTitle& title, const Results& results);
/// One object in one line, without the line's end.
[[nodiscard]] std::string to_json(const RunTitle& title, const Results& results);

}  // namespace sluice::sim
