#pragma once

// The classes of code points that DeepSeek's pre-tokenizer tells apart.
//
// The regex engine, its Unicode version and its idea of white space all change token ids, so the
// table is a probe of the reference implementation (Unicode 16.0), not of the machine's locale.

#include <cstdint>

namespace sluice::text {

enum class UnicodeClass : std::uint8_t {
    kOther,                ///< Controls, format characters, unassigned.
    kNumber,               ///< \p{N}
    kLetterOrMark,         ///< \p{L} or \p{M}: the patterns never tell them apart.
    kPunctuationOrSymbol,  ///< \p{P} or \p{S}
    kSpace,                ///< \s: with U+0085, without U+FEFF.
};

/// Class of any value; kOther for surrogates and beyond U+10FFFF.
[[nodiscard]] UnicodeClass unicode_class(char32_t code_point);

}  // namespace sluice::text
