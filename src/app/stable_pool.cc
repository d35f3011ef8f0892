#include "app/stable_pool.h"

namespace sluice::app {

std::expected<ServiceConfig, std::vector<Error>> read_config(const std::string& file) {
    if (file.empty()) return default_service_config();
    return load_service_config(file);
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
