#pragma once

// How the verbs of `gate` end.

#include <string>

#include "base/error.h"
#include "gates/gate_report.h"

namespace sluice::app {

/// Prints the report; a gate that does not pass is a failure.
[[nodiscard]] int print_report(const gates::GateReport& report, bool json);

/// "2026-11-30T14:05:00Z"
[[nodiscard]] std::string utc_now();

[[nodiscard]] Result<std::string> read_text_file(const std::string& path);
[[nodiscard]] Result<void> write_text_file(const std::string& path, const std::string& text);

}  // namespace sluice::app
