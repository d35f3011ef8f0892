#pragma once

// Whether an answer has the shape that was asked for.

#include "base/request_class.h"
#include "gateway/request_report.h"

namespace sluice::gateway {

/// JSON was asked for and the text is none, or a tool is called with arguments that are none. What
/// was cut off, by its length or by us, was on its way and does not count.
[[nodiscard]] bool is_invalid(RequestKind kind, const CollectedAnswer& answer);

}  // namespace sluice::gateway
