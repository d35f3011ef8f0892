#include "app/admission_options.h"

#include <algorithm>

#include "base/limits.h"

namespace sluice::app {
namespace {

gateway::PrefixShare share_of(const TenantConfig& tenant) {
    if (*tenant.share == "user") return gateway::PrefixShare::kUser;
    if (*tenant.share == "session") return gateway::PrefixShare::kSession;
    return gateway::PrefixShare::kTenant;
}

admission::TenantLimits limits_of(const TenantConfig& tenant) {
    return {.name = *tenant.name,
            .requests_per_minute = static_cast<double>(*tenant.requests_per_minute),
            .tokens_per_minute = static_cast<double>(*tenant.tokens_per_minute),
            .concurrency = static_cast<std::uint32_t>(*tenant.concurrency),
            .weight = *tenant.weight,
            .priority = static_cast<std::int32_t>(*tenant.priority)};
}

}  // namespace

gateway::FairGateOptions admission_options(const ServiceConfig& config) {
    const auto requests = static_cast<std::size_t>(*config.gateway.queue_requests);
    gateway::FairGateOptions options;
    options.admission.bounds = {.requests = requests,
                                .bytes = limits::kQueuedBytes,
                                .of_tenant = std::min(requests, limits::kQueuedOfTenant)};
    options.admission.wait_max = *config.gateway.queue_wait;
    for (const TenantConfig& tenant : config.tenants) {
        options.admission.tenants.push_back(limits_of(tenant));
        options.caches.emplace(*tenant.name,
                               gateway::CacheRules{.share = share_of(tenant),
                                                   .retention = *retention_from(*tenant.retention),
                                                   .bytes = *tenant.kv_bytes});
    }
    return options;
}

}  // namespace sluice::app
