#pragma once

// What a block is called where others keep it: "kv:{tenant}:{class}:{key as 64 hexadecimal digits}".
// Any Redis can hold it; our own nodes read tenant and class out of it and hold both to their limits.

#include <optional>
#include <string>
#include <string_view>

#include "base/retention.h"
#include "kv/block_key.h"

namespace sluice::kv {

using sluice::Retention;

struct BlockName {
    std::string tenant;
    Retention retention = Retention::kChat;
    BlockKey key{};
    bool operator==(const BlockName&) const = default;
};

/// Bytes of a tenant other than letters, digits, '-', '_' and '.' are written as %XX, so that no two
/// names run together.
[[nodiscard]] std::string to_wire(const BlockName& name);

/// Nothing if it is no such name, or one that `to_wire` would write differently.
[[nodiscard]] std::optional<BlockName> parse_block_name(std::string_view wire);

}  // namespace sluice::kv
