#pragma once

// Text that came from outside, made safe inside HTML and SVG.

#include <string>
#include <string_view>

namespace sluice::record {

/// For content and for attribute values in double quotes. Control characters become spaces.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace sluice::record
