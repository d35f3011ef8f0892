#include "gateway/kv_holders.h"

namespace sluice::gateway {

std::vector<KvHolder> kv_holders(const PoolSet& pools, const KvMembers& members) {
    std::vector<KvHolder> all;
    for (const auto& pool : pools) {
        if (pool->engine() != "native") continue;
        for (const WorkerView& worker : pool->workers())
            all.push_back(
                {.name = worker.name, .pool = pool->name(), .url = worker.url, .http = worker.url});
    }
    for (const KvNode& node : members.nodes())
        all.push_back({.name = {},
                       .pool = {},
                       .url = node.url,
                       .http = node.http,
                       .password = password_of(node).value_or("")});
    return all;
}

}  // namespace sluice::gateway
