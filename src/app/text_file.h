#pragma once

// Whole files that a command writes. Those it reads go through base/private_file.h, within a bound.

#include <string>

#include "base/error.h"

namespace sluice::app {

[[nodiscard]] Result<void> write_text_file(const std::string& path, const std::string& text);

}  // namespace sluice::app
