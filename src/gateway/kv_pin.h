#pragma once

// Which blocks an operator means who wants some to be kept: by their names, by a request of a short
// while ago, or by a chat that begins like those to come.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gateway/cache_rules.h"
#include "gateway/kv_history.h"
#include "gateway/pool.h"
#include "port/kv_orders.h"

namespace sluice::gateway {

/// What a pin is resolved with.
struct PinContext {
    const KvHistory& history;
    const Pool& pool;  ///< Renders a chat.
    const std::map<std::string, CacheRules, std::less<>>& caches;
};

/// From the body of POST /admin/kv/pin. A block is named in every class, since it may be kept in any of
/// them. Errors name the field; `kNotFound` for a request that is not known any more.
[[nodiscard]] Result<port::KvPinOrder> read_pin(std::string_view body, const PinContext& context);

}  // namespace sluice::gateway
