#include "text/utf8.h"

namespace sluice::text {
namespace {

TEST(Utf8Test, EveryCodePointSurvivesEncodingAndDecoding) {
    for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
        if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
        std::string text;
        append_utf8(text, code_point);
        const Utf8Character character = decode_utf8(text);
        ASSERT_EQ(character.status, Utf8Status::kValid) << std::hex << static_cast<int>(code_point);
        ASSERT_EQ(character.code_point, code_point);
        ASSERT_EQ(character.length, text.size());
    }
}

TEST(Utf8Test, WhatIsNotACharacterIsAppendedAsTheReplacementCharacter) {
    std::string text;
    append_utf8(text, 0xD800);
    append_utf8(text, 0x110000);
    EXPECT_EQ(text, "\uFFFD\uFFFD");
}

// The examples of the Unicode standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8Test, EachMaximalIllFormedPartBecomesOneReplacementCharacter) {
    EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
              "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41");
    EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
              "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41");
    EXPECT_EQ(replace_invalid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
              "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41\uFFFD\uFFFD\x42");
    EXPECT_EQ(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
              "\uFFFD\uFFFD\uFFFD\uFFFD\x41");
}

TEST(Utf8Test, OnlyAnUnfinishedCharacterAtTheEndIsTruncated) {
    const std::string text = "\xF0\x9F\x98\x80";
    for (std::size_t length = 1; length < text.size(); ++length) {
        const Utf8Character character = decode_utf8(std::string_view(text).substr(0, length));
        EXPECT_EQ(character.status, Utf8Status::kTruncated);
        EXPECT_EQ(character.length, length);
    }
    EXPECT_EQ(decode_utf8("\xF0\x9Fx").status, Utf8Status::kInvalid);
    EXPECT_EQ(decode_utf8("\xE0\x80").status, Utf8Status::kInvalid);
    EXPECT_EQ(decode_utf8("\x80").status, Utf8Status::kInvalid);
}

TEST(Utf8Test, ValidTextStaysAsItIs) {
    const std::string text = "Grüße, 世界 😀\n";
    EXPECT_TRUE(is_valid_utf8(text));
    EXPECT_EQ(replace_invalid_utf8(text), text);
    EXPECT_TRUE(is_valid_utf8(""));
    EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));
    EXPECT_FALSE(is_valid_utf8("abc\xE4\xB8"));
}

}  // namespace
}  // namespace sluice::text
