#pragma once

// What a leg's fault says about its worker.

#include "dispatch/request.h"
#include "routing/health.h"

namespace sluice::dispatch {

[[nodiscard]] inline routing::LegResult leg_result(LegFault fault) {
    using routing::LegResult;
    switch (fault) {
        // Blocks that are lost are nobody's fault.
        case LegFault::kRefused:
        case LegFault::kBlocksLost: return LegResult::kClientError;
        case LegFault::kFull: return LegResult::kFull;
        case LegFault::kMisconfigured: return LegResult::kMisconfigured;
        case LegFault::kStalled: return LegResult::kStalled;
        case LegFault::kNotTaken:
        case LegFault::kUnavailable:
        case LegFault::kBroken: return LegResult::kFailed;
    }
    return LegResult::kFailed;
}

/// Whether it may be gone, so that it is asked before it gets another request.
[[nodiscard]] inline bool may_be_gone(LegFault fault) {
    return fault != LegFault::kFull && fault != LegFault::kRefused &&
           fault != LegFault::kBlocksLost;
}

}  // namespace sluice::dispatch
