#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr char32_t kFirstRemapped = 0x100;
constexpr std::size_t kRemapped = 68;

constexpr auto kSpellings = [] {
    std::array<char32_t, 256> spellings{};
    char32_t next = kFirstRemapped;
    for (unsigned byte = 0; byte < 256; ++byte) {
        spellings[byte] = stands_for_itself(byte) ? byte : next++;
    }
    return spellings;
}();

constexpr auto kRemappedBytes = [] {
    std::array<std::uint8_t, kRemapped> bytes{};
    std::size_t next = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
        if (!stands_for_itself(byte)) bytes[next++] = static_cast<std::uint8_t>(byte);
    }
    return bytes;
}();

}  // namespace

char32_t spelling_of_byte(std::uint8_t byte) { return kSpellings[byte]; }

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
    std::string bytes;
    while (!spelling.empty()) {
        const Utf8Character character = decode_utf8(spelling);
        if (character.status != Utf8Status::kValid) return std::nullopt;
        spelling.remove_prefix(character.length);
        const char32_t code_point = character.code_point;
        if (code_point < 256 && stands_for_itself(code_point)) {
            bytes += static_cast<char>(code_point);
        } else if (code_point >= kFirstRemapped && code_point < kFirstRemapped + kRemapped) {
            bytes += static_cast<char>(kRemappedBytes[code_point - kFirstRemapped]);
        } else {
            return std::nullopt;
        }
    }
    return bytes;
}

}  // namespace sluice::text
