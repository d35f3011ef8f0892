#pragma once

// From what the gateway knows of a request at its end to the row that is kept of it.

#include "gateway/request_report.h"
#include "record/request_row.h"

namespace sluice::gateway {

[[nodiscard]] record::RequestRow row_of(const RequestReport& report);

}  // namespace sluice::gateway
