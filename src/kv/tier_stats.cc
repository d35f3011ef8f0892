#include "kv/tier_stats.h"

namespace sluice::kv {

std::string_view to_string(Removal removal) {
    constexpr auto kNames = std::to_array<std::string_view>(
        {"evicted", "tenant_bound", "expired", "erased", "replaced", "corrupt"});
    static_assert(kNames.size() == kRemovals);
    return kNames.at(static_cast<std::size_t>(removal));
}

}  // namespace sluice::kv
