#pragma once

// Text of protocols: ASCII only, whatever the locale.

#include <algorithm>
#include <string_view>

namespace sluice::net {

[[nodiscard]] constexpr char ascii_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, ascii_lower, ascii_lower);
}

[[nodiscard]] constexpr bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

/// RFC 9110, section 5.6.2: what a method or a field name is made of.
[[nodiscard]] constexpr bool is_token(std::string_view text) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::ranges::all_of(text, [&](char c) {
        return (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || (c >= '0' && c <= '9') ||
               c == '-' || kOthers.find(c) != std::string_view::npos;
    });
}

}  // namespace sluice::net
