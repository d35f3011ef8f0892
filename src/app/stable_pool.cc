#include "app/stable_pool.h"

namespace sluice::app {

std::expected<ServiceConfig, std::vector<Error>> read_config(const std::string& file) {
    if (file.empty()) return default_service_config();
    auto config = load_service_config(file);
    if (!config) return config;
    if (auto plan = traffic_plan(*config); !plan) return std::unexpected(std::move(plan.error()));
    return config;
}

std::vector<std::string> pool_names(const ServiceConfig& config) {
    std::vector<std::string> names;
    for (const PoolConfig& pool : config.pools) names.push_back(*pool.name);
    return names;
}

std::expected<traffic::Plan, std::vector<Error>> traffic_plan(const ServiceConfig& config) {
    return traffic::check_plan(config.plan, pool_names(config));
}

int fail_config(const std::vector<Error>& errors) {
    const bool unreadable = errors.front().code() == ErrorCode::kIo;
    return fail(unreadable ? kCannotStart : kWrongUse, errors);
}

const PoolConfig& stable_pool(const ServiceConfig& config) {
    for (const PoolConfig& pool : config.pools)
        if (*pool.name == *config.plan.stable) return pool;
    return config.pools.front();
}

}  // namespace sluice::app
