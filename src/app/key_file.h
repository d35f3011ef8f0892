#pragma once

// Where a service keeps its API keys, and how a command changes them.

#include <functional>
#include <string>

#include "admission/key_table.h"
#include "app/state_folder.h"
#include "base/error.h"
#include "base/service_config.h"

namespace sluice::app {

/// `[gateway] keys` of the configuration, else keys.json in the state folder.
[[nodiscard]] std::string key_file_path(const ServiceConfig& config, const StateFolder& folder);

/// No file is an empty table.
[[nodiscard]] Result<admission::KeyTable> read_keys(const std::string& path);

/// Reads, changes and writes while nobody else does; makes the folder where needed. A change that
/// fails writes nothing.
[[nodiscard]] Result<void> change_keys(
    const std::string& path, const std::function<Result<void>(admission::KeyTable&)>& change);

}  // namespace sluice::app
