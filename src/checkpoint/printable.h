#pragma once

// Names and texts from a file that may be hostile, made fit for a terminal, a log line or JSON.

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::checkpoint {

/// `text` as valid UTF-8 on one line: control characters and bytes that aren't UTF-8 become \xNN.
/// At most about `bytes_max` bytes; what is cut ends in "…", never inside a character.
[[nodiscard]] std::string printable(std::string_view text, std::size_t bytes_max = 80);

}  // namespace sluice::checkpoint
