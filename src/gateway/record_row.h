#pragma once

// From what the gateway knows of a request at its end to the row that is kept of it.

#include <memory>
#include <string>

#include "base/function_ref.h"
#include "gateway/request_report.h"
#include "record/request_row.h"
#include "traffic/comparison.h"

namespace sluice::gateway {

/// What tells the versions of a worker apart: record::digest of their manifest.
using FingerprintOf = FunctionRef<std::string(const std::shared_ptr<const port::ServerInfo>&)>;

[[nodiscard]] record::RequestRow row_of(const RequestReport& report, FingerprintOf fingerprint_of);

/// `pool`: whose answer it was laid beside.
[[nodiscard]] record::Comparison comparison_of(const traffic::Comparison& comparison,
                                               std::string pool);

}  // namespace sluice::gateway
