#pragma once

// What a tenant may use. Zero is "no limit" in every field but `weight`.

#include <cstdint>
#include <string>

namespace sluice::admission {

/// Index of a tenant within one Admission; never reused.
using TenantIndex = std::uint32_t;

struct TenantLimits {
    std::string name;
    double requests_per_minute = 0;
    double tokens_per_minute = 0;   ///< Prompt and answer together.
    std::uint32_t concurrency = 0;  ///< Requests with a worker at one time; further ones wait.
    double weight = 1;          ///< Share of the service among those who want more than there is.
    std::int32_t priority = 0;  ///< Served before all tenants of lower priority.
    bool operator==(const TenantLimits&) const = default;
};

}  // namespace sluice::admission
