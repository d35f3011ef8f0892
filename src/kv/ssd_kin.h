#pragma once

// Which entry of the SSD tier follows which: a block (kv/block_value.h) follows the one that its value
// calls its parent. Other values stand alone.
//
// An id is 64 bits of a hash: two blocks that share one by accident are taken for kin, which costs a
// needless copy or a block too many, and never a wrong value. The same id in every process: they are
// kept on disk.

#include <cstdint>
#include <string_view>

namespace sluice::kv {

/// For whoever follows nothing.
inline constexpr std::uint64_t kSsdNoKin = 0;

/// Of a block whatever class it is kept under, for one may follow another class's; never kSsdNoKin.
[[nodiscard]] std::uint64_t ssd_kin(std::string_view name);

/// What the value follows, if it is a block's; else kSsdNoKin.
[[nodiscard]] std::uint64_t ssd_parent(std::string_view name, std::string_view value);

}  // namespace sluice::kv
