#pragma once

// Spans as OTLP/HTTP JSON (opentelemetry-proto 1.x, ExportTraceServiceRequest).

#include <span>
#include <string>

#include "gateway/request_report.h"

namespace sluice::gateway {

/// One request and its legs as spans, to be joined by commas. A leg is a child of the request.
[[nodiscard]] std::string spans_json(const RequestReport& report);

/// The body of one export.
[[nodiscard]] std::string export_json(std::span<const std::string> spans);

}  // namespace sluice::gateway
