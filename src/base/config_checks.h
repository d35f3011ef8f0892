#pragma once

// Checks of values that several tables of a configuration hold.

#include <string>
#include <string_view>

#include "base/config.h"

namespace sluice::config {

/// 1 to 64 of a-z, 0-9, '-' and '_'.
[[nodiscard]] bool is_name(std::string_view name);

/// Notes that `key` is wrong unless `url` is "http://..." or "https://..." without a final '/', a
/// query or credentials.
void check_url(Table& table, std::string_view key, const std::string& url);

}  // namespace sluice::config
