// Any text as a store's address and as what a cluster's node says about a slot.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "kvnode/redis_cluster.h"
#include "kvnode/store_url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice::kvnode;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    SLUICE_ASSERT(cluster_slot(text) < kClusterSlots);
    if (const auto to = parse_redirection(text)) {
        SLUICE_ASSERT(to->slot < kClusterSlots);
        SLUICE_ASSERT(to->port != 0);
    }
    const auto url = parse_store_url(text);
    if (!url) return 0;
    // A name is a URL of the same place, and holds no secret.
    const auto again = parse_store_url(url->name());
    SLUICE_ASSERT(again.has_value());
    SLUICE_ASSERT(again->name() == url->name());
    SLUICE_ASSERT(again->password.empty());
    return 0;
}
