#pragma once

// A configuration as `sluice config show` prints it: every setting with its value, place and meaning.

#include <string>
#include <string_view>
#include <vector>

#include "base/service_config.h"

namespace sluice {

/// One line.
struct ConfigRow {
    std::string table;  ///< "gateway", "pool[0]"
    std::string key;    ///< "price.hour"
    std::string value;  ///< As TOML writes it.
    std::string place;
    std::string_view meaning;
};

[[nodiscard]] std::vector<ConfigRow> rows(const ServiceConfig& config);

/// TOML that gives the same configuration, with the place and meaning of each value beside it.
[[nodiscard]] std::string render(const ServiceConfig& config);

}  // namespace sluice
