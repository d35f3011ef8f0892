#pragma once

// How long what a request leaves in the caches is kept: by class, not by request.

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

enum class Retention : std::uint8_t {
    kAgent,  ///< Tools at work: comes back soon, or never.
    kChat,   ///< People: come back tomorrow.
    kNone,   ///< Leaves nothing outside of the engine's own pool.
};

/// "agent", "chat" or "none".
[[nodiscard]] std::string_view to_string(Retention retention);
[[nodiscard]] std::optional<Retention> retention_from(std::string_view name);

}  // namespace sluice
