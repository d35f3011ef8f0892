#pragma once

// The flags of `sluice engine` that say where blocks are kept outside of its pool.

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/kv_config.h"
#include "worker/kv_options.h"

namespace CLI {
class App;
}

namespace sluice::app {

/// As the command line has them; what is not there is as [kv] of the configuration says.
struct KvFlags {
    std::optional<std::string> dram;
    std::optional<std::string> ca_bundle;
    std::optional<std::string> tenant_bytes;
    std::optional<std::string> retain;
    std::vector<std::string> stores;  ///< In place of the configuration's nodes and directory.
    std::optional<std::size_t> replicas;
    std::optional<std::string> reuse;
    std::optional<std::string> force;
};
void define_kv(CLI::App& command, KvFlags& flags);

/// Errors name the flag, or the place in the file.
[[nodiscard]] Result<worker::KvOptions> kv_options(const KvFlags& flags, const KvConfig& config);

}  // namespace sluice::app
