#pragma once

// From what the gateway knows of a request at its end to the row that is kept of it.

#include <string>

#include "gateway/request_report.h"
#include "record/request_row.h"
#include "traffic/comparison.h"

namespace sluice::gateway {

[[nodiscard]] record::RequestRow row_of(const RequestReport& report);

/// `pool`: whose answer it was laid beside.
[[nodiscard]] record::Comparison comparison_of(const traffic::Comparison& comparison,
                                               std::string pool);

}  // namespace sluice::gateway
