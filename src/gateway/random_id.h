#pragma once

// Names and seeds that no two requests share.

#include <cstdint>
#include <string>

namespace sluice::gateway {

/// 32 lower-case hexadecimal digits: the milliseconds since 1970, then 80 random bits. Ids that follow
/// each other in time do so in every index of them, too, which keeps those cheap to grow.
[[nodiscard]] std::string draw_rid();

/// Survives a trip through a JSON number: below 2^53.
[[nodiscard]] std::uint64_t draw_seed();

}  // namespace sluice::gateway
