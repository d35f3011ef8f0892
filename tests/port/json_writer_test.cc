#include "port/json_writer.h"

#include <gtest/gtest.h>

namespace sluice::port {
namespace {

std::string written(std::string_view text) {
    std::string out;
    JsonWriter(out).value(text);
    return out;
}

/// One byte at a time, as RFC 8259 has it; all bytes are ASCII.
std::string expected(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        constexpr std::string_view kHex = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out.append("\\").append(1, c);
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\r') {
            out += "\\r";
        } else if (c == '\t') {
            out += "\\t";
        } else if (byte < 0x20) {
            out.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
        } else {
            out += c;
        }
    }
    return out += '"';
}

TEST(JsonWriterTest, WhereverAByteStandsItIsEscapedOrNot) {
    for (int byte = 0; byte < 0x80; ++byte) {
        for (std::size_t length = 1; length <= 20; ++length) {
            for (std::size_t at = 0; at < length; ++at) {
                std::string text(length, ' ');  // The least byte that stays as it is.
                text[at] = static_cast<char>(byte);
                ASSERT_EQ(written(text), expected(text)) << byte << " at " << at;
            }
        }
    }
}

TEST(JsonWriterTest, WhatIsNoUtf8IsReplacedWhereverItStands) {
    for (std::size_t before = 0; before < 20; ++before) {
        const std::string plain(before, 'p');
        EXPECT_EQ(written(plain + "\xE4\xBD\xA0 tail of it"),
                  "\"" + plain + "\xE4\xBD\xA0 tail of it\"");
        EXPECT_EQ(written(plain + "\xFF tail of it"), "\"" + plain + "\xEF\xBF\xBD tail of it\"");
    }
}

}  // namespace
}  // namespace sluice::port
