#pragma once

// Bytes that never change and live while somebody has them: how values pass through tiers, codecs and
// sockets without being copied.

#include <memory>
#include <string_view>

namespace sluice::kv {

struct SharedBytes {
    std::string_view bytes;
    std::shared_ptr<const void> owner;  ///< Keeps `bytes` where they are; none: no value.
};

}  // namespace sluice::kv
