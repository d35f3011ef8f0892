#pragma once

// The flags of `sluice engine` that say where blocks are kept outside of its pool.

#include <string>
#include <vector>

#include "base/error.h"
#include "worker/kv_options.h"

namespace CLI {
class App;
}

namespace sluice::app {

/// As the command line has them.
struct KvFlags {
    std::string dram = "0B";
    std::string tenant_bytes = "0B";
    std::string retain;
    std::vector<std::string> stores;
    std::size_t replicas = 1;
    std::string reuse = "exact";
    std::string force;
};
void define_kv(CLI::App& command, KvFlags& flags);

/// Errors name the flag.
[[nodiscard]] Result<worker::KvOptions> kv_options(const KvFlags& flags);

}  // namespace sluice::app
