#pragma once

// Whether an answer that broke after its first byte can go on elsewhere, by kind of engine. One that
// can't ends with a clear error: an answer that only looks continued is worse than one that broke.

#include <cstdint>
#include <span>
#include <string_view>

#include "dispatch/request.h"

namespace sluice::dispatch {

enum class Resume : std::uint8_t {
    kExact,        ///< The same tokens as if nothing had happened, bit for bit.
    kApproximate,  ///< Goes on after the same tokens, but may choose others from there.
    kRefused,      ///< It never goes on: only what the client has seen nothing of is tried again.
};

/// "exact", "approximate" or "refused".
[[nodiscard]] std::string_view to_string(Resume resume);

struct EngineKind {
    std::string_view name;  ///< As `engine` of a pool.
    Resume resume;
    std::string_view why;
};

/// All kinds there are, in docs/pools.md's order.
[[nodiscard]] std::span<const EngineKind> engine_kinds();
/// Unknown kinds are refused.
[[nodiscard]] const EngineKind& engine_kind(std::string_view name);

/// How legs on such an engine may be repeated.
[[nodiscard]] Rules rules_of(std::string_view name);

}  // namespace sluice::dispatch
