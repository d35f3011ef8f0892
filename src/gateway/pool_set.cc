#include "gateway/pool_set.h"

#include <algorithm>

namespace sluice::gateway {

Pool* PoolSet::find(std::string_view name) const {
    const auto found =
        std::ranges::find_if(pools_, [&](const auto& p) { return p->name() == name; });
    return found == pools_.end() ? nullptr : found->get();
}

}  // namespace sluice::gateway
