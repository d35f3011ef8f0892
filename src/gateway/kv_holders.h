#pragma once

// Who holds KV blocks: the workers of native pools, which keep some in their memory, and cache nodes.

#include <string>
#include <vector>

#include "gateway/kv_members.h"
#include "gateway/pool_set.h"

namespace sluice::gateway {

struct KvHolder {
    std::string name;        ///< Of a worker; empty for a node.
    std::string pool{};      ///< Of a worker.
    std::string url;         ///< "http://127.0.0.1:40001", "redis://10.0.0.7:7301"
    std::string http{};      ///< Where it is asked; empty: it is no server of ours, and can't be.
    std::string password{};  ///< Of a node; empty: it asks for none.

    [[nodiscard]] bool is_node() const { return name.empty(); }
    [[nodiscard]] bool is_foreign() const { return http.empty(); }
};

/// All of them at this moment: workers first, then nodes in their order.
[[nodiscard]] std::vector<KvHolder> kv_holders(const PoolSet& pools, const KvMembers& members);

}  // namespace sluice::gateway
