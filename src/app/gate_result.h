#pragma once

// How the verbs of `gate` end.

#include <string>

#include "gates/gate_report.h"

namespace sluice::app {

/// Prints the report; a gate that does not pass is a failure.
[[nodiscard]] int print_report(const gates::GateReport& report, bool json);

/// "2026-11-30T14:05:00Z"
[[nodiscard]] std::string utc_now();

}  // namespace sluice::app
