#pragma once

// What the commands that run a service share: reading the configuration, and the pool that answers.

#include <expected>
#include <string>
#include <vector>

#include "app/command.h"
#include "base/service_config.h"
#include "traffic/plan_check.h"

namespace sluice::app {

/// Of the file, or the defaults if `file` is empty. Its traffic plan makes sense.
[[nodiscard]] std::expected<ServiceConfig, std::vector<Error>> read_config(const std::string& file);

/// Prints every mistake; a file that can't be read is another exit code than a wrong one.
[[nodiscard]] int fail_config(const std::vector<Error>& errors);

[[nodiscard]] std::vector<std::string> pool_names(const ServiceConfig& config);

/// The [plan] tables, checked. No mistakes are left in what `read_config` gave.
[[nodiscard]] std::expected<traffic::Plan, std::vector<Error>> traffic_plan(
    const ServiceConfig& config);

[[nodiscard]] const PoolConfig& stable_pool(const ServiceConfig& config);

}  // namespace sluice::app
