#include "base/retention.h"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

constexpr auto kNames = std::to_array<std::string_view>({"agent", "chat", "none"});

}  // namespace

std::string_view to_string(Retention retention) {
    return kNames.at(static_cast<std::size_t>(retention));
}

std::optional<Retention> retention_from(std::string_view name) {
    const auto* const found = std::ranges::find(kNames, name);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<Retention>(found - kNames.begin());
}

}  // namespace sluice
