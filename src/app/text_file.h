#pragma once

// Whole files, read and written.

#include <string>

#include "base/error.h"

namespace sluice::app {

[[nodiscard]] Result<std::string> read_text_file(const std::string& path);
[[nodiscard]] Result<void> write_text_file(const std::string& path, const std::string& text);

}  // namespace sluice::app
