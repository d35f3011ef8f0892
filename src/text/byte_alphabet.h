#pragma once

// GPT-2's byte alphabet: vocabulary files spell every token in 256 printable characters, one a byte.
//
// A byte that is printable in Latin-1 stands for itself; the other 68 get U+0100.. in their order.
// Sluice meets it only at the door: inside, a token is its bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::text {

/// The character that spells `byte`.
[[nodiscard]] char32_t spelling_of_byte(std::uint8_t byte);

/// The bytes that `spelling` stands for; nothing if a character is outside the alphabet.
[[nodiscard]] std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace sluice::text
