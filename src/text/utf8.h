#pragma once

// UTF-8 as it comes from outside: maybe broken, maybe cut in the middle of a character.
//
// Follows the Unicode standard's table of well-formed sequences: no overlong forms, no surrogates,
// nothing beyond U+10FFFF. Broken input is replaced by one U+FFFD per maximal ill-formed part, as
// browsers and Rust do it.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::text {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

enum class Utf8Status : std::uint8_t {
    kValid,
    kInvalid,    ///< No continuation of the text could make these bytes a character.
    kTruncated,  ///< The text ends inside a character that is right so far.
};

struct Utf8Character {
    char32_t code_point = kReplacementCharacter;
    std::uint8_t length = 0;  ///< Bytes taken: at least 1, at most 4.
    Utf8Status status = Utf8Status::kInvalid;
};

/// The first character of `text`, which must not be empty.
[[nodiscard]] Utf8Character decode_utf8(std::string_view text);

[[nodiscard]] bool is_valid_utf8(std::string_view text);

/// `text` with every ill-formed part replaced by U+FFFD; unchanged if it is valid.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

/// Appends one character; U+FFFD for surrogates and values beyond U+10FFFF.
void append_utf8(std::string& text, char32_t code_point);

}  // namespace sluice::text
