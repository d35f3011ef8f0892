#pragma once

// `sluice bench --fit`: measures the native engine on this machine and writes what `sluice sim
// --engine` needs to know of it.

#include <cstddef>
#include <string>

#include "app/api_target.h"
#include "app/command.h"

namespace sluice::app {

struct BenchFitOptions {
    std::string model;
    std::size_t threads = 1;
    /// Engines that share the machine with it; how much they slow it down is measured. 0: nothing.
    std::size_t neighbours = 0;
    /// A running service with that engine: what it adds to a request is measured, too. Empty: nothing.
    ApiOptions api{.url = {}, .model = {}, .api_key_env = {}};
    std::string output;  ///< TOML; empty: stdout.
};

/// Returns an exit code.
[[nodiscard]] int bench_fit(const BenchFitOptions& options);

}  // namespace sluice::app
