#pragma once

// The [plan] tables of a configuration as they are written, each value with its place. Whether they
// make a plan that can be carried out is for traffic/plan_check.h to say.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/setting.h"

namespace sluice {

namespace config {
class Table;
}

/// [[plan.split]]: a share of the conversations is answered by another pool than the stable one.
struct SplitConfig {
    Setting<std::string> pool;
    Setting<std::optional<double>> weight;
    /// How long the weight holds unless the plan is applied again.
    Setting<std::optional<std::chrono::milliseconds>> lease;
};

/// [[plan.shadow]]: a share of the conversations is copied to a pool; nobody waits for its answers.
struct ShadowConfig {
    Setting<std::string> pool;
    Setting<std::optional<double>> share;
    Setting<std::int64_t> max_concurrent;
};

/// [[plan.guard]]: what ends splits and shadows by itself.
struct GuardConfig {
    Setting<std::string> pool;
    Setting<std::string> metric;
    Setting<std::optional<double>> max;        ///< A share, or seconds.
    Setting<std::optional<double>> max_ratio;  ///< To the stable pool's.
    Setting<std::int64_t> min_samples;         ///< 0: not given.
    Setting<std::chrono::milliseconds> window;
};

struct PlanConfig {
    Setting<std::string> stable;  ///< Name of the pool that answers.
    /// Goes into the hash that gives each conversation its place; another salt deals them out anew.
    Setting<std::string> salt;
    std::vector<SplitConfig> splits;
    std::vector<ShadowConfig> shadows;
    std::vector<GuardConfig> guards;
};

/// Reads the table [plan] to its end; mistakes in it are noted in its document. Without a table,
/// the defaults. That `stable` names a pool is left to the caller.
[[nodiscard]] PlanConfig read_plan_config(std::optional<config::Table> table);

}  // namespace sluice
