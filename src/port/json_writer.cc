#include "port/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace sluice::port {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kHexDigits = "0123456789abcdef";

/// Enough for any 64-bit integer and any float.
constexpr std::size_t kNumberBytes = 32;

template <class T>
void append_number(std::string& out, T number) {
    std::array<char, kNumberBytes> text;
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
    out.append(text.data(), end);
}

bool plain(unsigned char byte) {
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/// Whether all eight bytes of `word` are plain: a byte's high bit below tells that it is not.
bool all_plain(std::uint64_t word) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    const auto has_zero = [](std::uint64_t bytes) { return (bytes - kOnes) & ~bytes; };
    const std::uint64_t odd =
        word | (word - 0x20 * kOnes) | has_zero(word ^ '"' * kOnes) | has_zero(word ^ '\\' * kOnes);
    return (odd & (0x80 * kOnes)) == 0;
}

/// How many bytes from the start need no escape. Most texts are short, and plain to their end.
std::size_t plain_run(std::string_view text) {
    std::size_t run = 0;
    for (std::uint64_t word = 0; run + sizeof word <= text.size(); run += sizeof word) {
        std::memcpy(&word, text.data() + run, sizeof word);
        if (!all_plain(word)) break;
    }
    while (run < text.size() && plain(static_cast<unsigned char>(text[run]))) ++run;
    return run;
}

void append_escaped(std::string& out, unsigned char byte) {
    switch (byte) {
        case '"': out += "\\\""; return;
        case '\\': out += "\\\\"; return;
        case '\n': out += "\\n"; return;
        case '\r': out += "\\r"; return;
        case '\t': out += "\\t"; return;
        default:
            out += "\\u00";
            out += kHexDigits[byte >> 4];
            out += kHexDigits[byte & 15];
    }
}

bool is_between(unsigned char byte, unsigned char low, unsigned char high) {
    return byte >= low && byte <= high;
}

/// Length of the multi-byte UTF-8 character that `text` starts with; 0 if it isn't one. The bounds
/// of the second byte keep out overlong forms, surrogates and what lies beyond U+10FFFF.
std::size_t character_length(std::string_view text) {
    const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = at(0);
    std::size_t length = 0;
    if (is_between(lead, 0xC2, 0xDF)) length = 2;
    if (is_between(lead, 0xE0, 0xEF)) length = 3;
    if (is_between(lead, 0xF0, 0xF4)) length = 4;
    if (length == 0 || text.size() < length) return 0;

    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    if (!is_between(at(1), low, high)) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if (!is_between(at(i), 0x80, 0xBF)) return 0;
    }
    return length;
}

}  // namespace

void JsonWriter::separate() {
    if (out_.empty()) return;
    const char last = out_.back();
    if (last != '{' && last != '[' && last != ':') out_ += ',';
}

void JsonWriter::open(char bracket) {
    separate();
    out_ += bracket;
}

void JsonWriter::key(std::string_view name) {
    value(name);
    out_ += ':';
}

void JsonWriter::value(std::string_view text) {
    separate();
    out_ += '"';
    while (!text.empty()) {
        const std::size_t run = plain_run(text);
        out_.append(text.substr(0, run));
        text.remove_prefix(run);
        if (text.empty()) break;

        const auto byte = static_cast<unsigned char>(text.front());
        std::size_t length = 1;
        if (byte < 0x80) {
            append_escaped(out_, byte);
        } else if (const std::size_t character = character_length(text); character > 0) {
            length = character;
            out_.append(text.substr(0, length));
        } else {
            out_ += kReplacement;
        }
        text.remove_prefix(length);
    }
    out_ += '"';
}

void JsonWriter::value(bool flag) {
    separate();
    out_ += flag ? "true" : "false";
}

void JsonWriter::value(std::int64_t number) {
    separate();
    append_number(out_, number);
}

void JsonWriter::value(std::uint64_t number) {
    separate();
    append_number(out_, number);
}

template <class Float>
void JsonWriter::floating(Float number) {
    separate();
    if (!std::isfinite(number)) {
        out_ += "null";
    } else if (number == 0) {
        // An integer zero has no sign, and "-0" reads as one.
        out_ += std::signbit(number) ? "-0.0" : "0";
    } else {
        append_number(out_, number);
    }
}

void JsonWriter::value(float number) { floating(number); }

void JsonWriter::value(double number) { floating(number); }

void JsonWriter::raw(std::string_view json) {
    separate();
    out_ += json;
}

void JsonWriter::null() {
    separate();
    out_ += "null";
}

void JsonWriter::digests(std::string_view name, std::span<const Sha256Digest> digests) {
    key(name);
    begin_array();
    for (const Sha256Digest& digest : digests) value(to_hex(digest));
    end_array();
}

}  // namespace sluice::port
