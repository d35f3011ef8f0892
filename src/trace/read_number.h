#pragma once

// Numbers in traces and mixes: the whole text, or nothing.

#include <charconv>
#include <string_view>
#include <system_error>

namespace sluice::trace {

/// False, with `out` in any state, unless all of `text` is one number of that type.
template <class T>
[[nodiscard]] bool read_number(std::string_view text, T& out) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
    return status == std::errc() && end == text.data() + text.size();
}

}  // namespace sluice::trace
