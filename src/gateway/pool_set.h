#pragma once

// All pools of a gateway, and the registry of their workers.

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "gateway/pool.h"
#include "routing/registry.h"

namespace sluice::gateway {

class PoolSet {
public:
    PoolSet() : registry_(limits::kRegistryWorkers) {}
    PoolSet(const PoolSet&) = delete;
    PoolSet& operator=(const PoolSet&) = delete;

    [[nodiscard]] routing::Registry& registry() { return registry_; }
    [[nodiscard]] const routing::Registry& registry() const { return registry_; }

    /// The index that the next pool to be added must have.
    [[nodiscard]] routing::PoolIndex next_index() const {
        return static_cast<routing::PoolIndex>(pools_.size());
    }
    void add(std::unique_ptr<Pool> pool) { pools_.push_back(std::move(pool)); }

    /// nullptr if there is none of this name.
    [[nodiscard]] Pool* find(std::string_view name) const;
    [[nodiscard]] Pool& at(routing::PoolIndex index) const { return *pools_[index]; }
    [[nodiscard]] auto begin() const { return pools_.begin(); }
    [[nodiscard]] auto end() const { return pools_.end(); }
    [[nodiscard]] std::size_t size() const { return pools_.size(); }

    [[nodiscard]] bool any_ready(const Pool& pool) const {
        return registry_.ready_in(pool.index(), std::chrono::steady_clock::now()) > 0;
    }

private:
    routing::Registry registry_;
    std::vector<std::unique_ptr<Pool>> pools_;
};

}  // namespace sluice::gateway
