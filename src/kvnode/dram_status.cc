#include "kvnode/dram_status.h"

#include <string>

namespace sluice::kvnode {

port::KvTierStatus dram_status(const kv::DramStats& stats) {
    port::KvTierStatus status{.tier = "dram",
                              .bytes = stats.bytes,
                              .limit_bytes = stats.limit,
                              .entries = stats.entries,
                              .hits = stats.hits,
                              .misses = stats.misses,
                              .corrupt = stats.corrupt};
    for (std::size_t i = 0; i < kv::kRemovals; ++i)
        status.evictions[std::string(kv::to_string(static_cast<kv::Removal>(i)))] =
            stats.removed[i];
    status.counters = {{"stored", stats.stored},
                       {"differs", stats.differs},
                       {"refused", stats.refused},
                       {"pinned_bytes", stats.pinned_bytes}};
    for (const kv::DramStats::Tenant& tenant : stats.tenants) {
        if (status.holdings.size() == port::kKvStatusRows) break;
        status.holdings.push_back(
            {.tenant = tenant.name, .bytes = tenant.bytes, .entries = tenant.entries});
    }
    return status;
}

}  // namespace sluice::kvnode
