#include "checkpoint/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace sluice::checkpoint {
namespace {

/// Smallest code point that needs a sequence of this many bytes: shorter ones are overlong.
constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};

std::size_t sequence_length(std::uint8_t lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return 2;
    if (lead >= 0xE0 && lead <= 0xEF) return 3;
    if (lead >= 0xF0 && lead <= 0xF4) return 4;
    return 0;
}

/// Bytes of the printable character that `text` starts with; 0 if it starts with none.
std::size_t printable_length(std::string_view text) {
    const auto lead = static_cast<std::uint8_t>(text.front());
    const std::size_t length = sequence_length(lead);
    if (length == 0 || length > text.size()) return 0;
    if (length == 1) return lead >= 0x20 && lead != 0x7F ? 1 : 0;

    std::uint32_t code_point = lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<std::uint8_t>(text[i]);
        if ((byte & 0xC0) != 0x80) return 0;
        code_point = (code_point << 6) | (byte & 0x3F);
    }
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    // U+0080 to U+009F are control characters, U+2028 and U+2029 break lines.
    const bool control = code_point < 0xA0 || code_point == 0x2028 || code_point == 0x2029;
    if (surrogate || control || code_point < kSmallest[length] || code_point > 0x10FFFF) return 0;
    return length;
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
    std::string result;
    while (!text.empty()) {
        if (result.size() >= bytes_max) return result + "…";
        const std::size_t length = printable_length(text);
        if (length == 0) {
            fmt::format_to(std::back_inserter(result), "\\x{:02x}",
                           static_cast<std::uint8_t>(text.front()));
            text.remove_prefix(1);
        } else {
            result += text.substr(0, length);
            text.remove_prefix(length);
        }
    }
    return result;
}

}  // namespace sluice::checkpoint
