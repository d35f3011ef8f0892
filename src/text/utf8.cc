#include "text/utf8.h"

namespace sluice::text {
namespace {

/// What a lead byte promises: the length and the bounds of the second byte (Unicode table 3-7).
struct Lead {
    std::uint8_t length;
    std::uint8_t second_min;
    std::uint8_t second_max;
};

constexpr Lead lead_of(std::uint8_t byte) {
    if (byte < 0x80) return {1, 0, 0};
    if (byte < 0xC2) return {0, 0, 0};
    if (byte < 0xE0) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};
    if (byte == 0xED) return {3, 0x80, 0x9F};
    if (byte < 0xF0) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};
    if (byte < 0xF4) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};
    return {0, 0, 0};
}

/// Length of the valid characters at the start of `text`.
std::size_t valid_prefix(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        const Utf8Character character = decode_utf8(text.substr(at));
        if (character.status != Utf8Status::kValid) break;
        at += character.length;
    }
    return at;
}

}  // namespace

Utf8Character decode_utf8(std::string_view text) {
    const auto first = static_cast<std::uint8_t>(text.front());
    if (first < 0x80) return {first, 1, Utf8Status::kValid};
    const Lead lead = lead_of(first);
    if (lead.length == 0) return {kReplacementCharacter, 1, Utf8Status::kInvalid};

    char32_t code_point = first & (0xFFU >> (lead.length + 1));
    for (std::uint8_t i = 1; i < lead.length; ++i) {
        if (i == text.size()) return {kReplacementCharacter, i, Utf8Status::kTruncated};
        const auto byte = static_cast<std::uint8_t>(text[i]);
        const std::uint8_t min = i == 1 ? lead.second_min : 0x80;
        const std::uint8_t max = i == 1 ? lead.second_max : 0xBF;
        if (byte < min || byte > max) return {kReplacementCharacter, i, Utf8Status::kInvalid};
        code_point = (code_point << 6) | (byte & 0x3FU);
    }
    return {code_point, lead.length, Utf8Status::kValid};
}

bool is_valid_utf8(std::string_view text) { return valid_prefix(text) == text.size(); }

std::string replace_invalid_utf8(std::string_view text) {
    std::string clean;
    clean.reserve(text.size());
    while (!text.empty()) {
        const std::size_t valid = valid_prefix(text);
        clean += text.substr(0, valid);
        text.remove_prefix(valid);
        if (text.empty()) break;
        append_utf8(clean, kReplacementCharacter);
        text.remove_prefix(decode_utf8(text).length);
    }
    return clean;
}

void append_utf8(std::string& text, char32_t code_point) {
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    if (surrogate || code_point > 0x10FFFF) code_point = kReplacementCharacter;
    const auto continuation = [&](int shift) {
        return static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU));
    };
    if (code_point < 0x80) {
        text += static_cast<char>(code_point);
    } else if (code_point < 0x800) {
        text += static_cast<char>(0xC0U | (code_point >> 6));
        text += continuation(0);
    } else if (code_point < 0x10000) {
        text += static_cast<char>(0xE0U | (code_point >> 12));
        text += continuation(6);
        text += continuation(0);
    } else {
        text += static_cast<char>(0xF0U | (code_point >> 18));
        text += continuation(12);
        text += continuation(6);
        text += continuation(0);
    }
}

}  // namespace sluice::text
