#pragma once

// Inline commands: what somebody types who has only a terminal (`SET key "a value"`).

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::kv {

/// The words of a line. "Double quotes" know \n \r \t \a \b \xHH and \ before anything else, 'single
/// quotes' \' only; a closing quote ends its word. None for a line of blanks; `kInvalid` for a quote
/// that doesn't end, or not with its word.
[[nodiscard]] Result<std::vector<std::string>> split_inline_command(std::string_view line);

}  // namespace sluice::kv
