#pragma once

// A cache or traffic layer that a team has of its own. Two systems that do one job undo each other's
// work, so `gate service` says of each job such a layer does whether to keep it there, to adapt it, or to
// replace it by Sluice's.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/service_config.h"

namespace sluice::gates {

enum class LayerKind : std::uint8_t { kTraffic, kCache };
/// "traffic", "cache"
[[nodiscard]] std::string_view to_string(LayerKind kind);
[[nodiscard]] std::optional<LayerKind> parse_layer_kind(std::string_view name);

enum class Decision : std::uint8_t { kKeep, kAdapt, kReplace };
/// "keep", "adapt", "replace"
[[nodiscard]] std::string_view to_string(Decision decision);

/// One job that a layer may do.
struct Interface {
    LayerKind kind{};
    std::string_view name;  ///< "retries", as an owners file has it.
    Decision decision{};
    std::string_view reason;
};

/// All that are known, those of one kind together.
[[nodiscard]] std::span<const Interface> interfaces();
[[nodiscard]] const Interface* find_interface(LayerKind kind, std::string_view name);
[[nodiscard]] std::vector<std::string_view> interface_names(LayerKind kind);

/// What the owners file says of one layer.
struct OwnLayer {
    LayerKind kind{};
    std::string name;   ///< "Envoy"
    std::string owner;  ///< Empty: nobody.
    std::string place;  ///< "owners.toml:12"
    std::vector<const Interface*> does;
    std::set<std::string_view> settled;  ///< Adapted or replaced, as was decided.
};

/// What is to be done about one interface behind or before this service; names the settings that matter.
[[nodiscard]] std::string advice_for(const Interface& interface, const ServiceConfig& config);

}  // namespace sluice::gates
