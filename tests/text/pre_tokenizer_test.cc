#include "text/pre_tokenizer.h"

#include <random>

namespace sluice::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(std::string_view text) {
    Pieces pieces;
    PieceReader reader(text);
    for (auto piece = reader.next(); !piece.empty(); piece = reader.next()) {
        pieces.emplace_back(piece);
    }
    return pieces;
}

TEST(PreTokenizerTest, AWordTakesTheSpaceBeforeIt) {
    EXPECT_EQ(pieces_of("Hello big world"), (Pieces{"Hello", " big", " world"}));
    EXPECT_EQ(pieces_of("a\tb"), (Pieces{"a", "\tb"}));
}

TEST(PreTokenizerTest, AnApostropheTakesTheLettersBehindIt) {
    EXPECT_EQ(pieces_of(" don't"), (Pieces{" don", "'t"}));
}

TEST(PreTokenizerTest, PunctuationTakesAWordUnlessASpaceComesFirst) {
    EXPECT_EQ(pieces_of("!abc"), (Pieces{"!abc"}));
    EXPECT_EQ(pieces_of(" !abc"), (Pieces{" !", "abc"}));
    EXPECT_EQ(pieces_of("!!abc"), (Pieces{"!!", "abc"}));
    EXPECT_EQ(pieces_of("_naïve"), (Pieces{"_na", "ïve"}));
    EXPECT_EQ(pieces_of("…abc"), (Pieces{"…", "abc"}));
}

TEST(PreTokenizerTest, NumbersAreCutInThreesFromTheLeftAndTakeNoSpace) {
    EXPECT_EQ(pieces_of("x 12345"), (Pieces{"x", " ", "123", "45"}));
    EXPECT_EQ(pieces_of("٣½Ⅷ²"), (Pieces{"٣½Ⅷ", "²"}));
    EXPECT_EQ(pieces_of("x1y"), (Pieces{"x", "1", "y"}));
}

TEST(PreTokenizerTest, TheLastSpaceOfARunBelongsToTheNextWord) {
    EXPECT_EQ(pieces_of("a   b"), (Pieces{"a", "  ", " b"}));
    EXPECT_EQ(pieces_of("a   "), (Pieces{"a", "   "}));
    EXPECT_EQ(pieces_of("a   1"), (Pieces{"a", "   ", "1"}));  // A number ends the segment.
    EXPECT_EQ(pieces_of("a\u3000\u3000b"), (Pieces{"a", "\u3000", "\u3000b"}));
}

TEST(PreTokenizerTest, LineBreaksEndARunOfSpaces) {
    EXPECT_EQ(pieces_of("a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
    EXPECT_EQ(pieces_of("\nb"), (Pieces{"\n", "b"}));
    EXPECT_EQ(pieces_of("x.\r\n\ny"), (Pieces{"x", ".\r\n\n", "y"}));
}

TEST(PreTokenizerTest, ChineseAndKanaStandAloneAndKanaMarksAreCutAgain) {
    EXPECT_EQ(pieces_of("go世界go"), (Pieces{"go", "世界", "go"}));
    EXPECT_EQ(pieces_of("カ・カ"), (Pieces{"カ", "・", "カ"}));
    EXPECT_EQ(pieces_of(" 世"), (Pieces{" ", "世"}));
    EXPECT_EQ(pieces_of("!世"), (Pieces{"!", "世"}));
}

TEST(PreTokenizerTest, CombiningMarksJoinLetters) {
    EXPECT_EQ(pieces_of("e\u0301a"), (Pieces{"e\u0301a"}));
    EXPECT_EQ(pieces_of("\u0301"), (Pieces{"\u0301"}));
}

TEST(PreTokenizerTest, WhatNothingMatchesIsOnePieceUpToTheNextMatch) {
    EXPECT_EQ(pieces_of("\x01\x02\x03"), (Pieces{"\x01\x02\x03"}));
    EXPECT_EQ(pieces_of("\x01\x02z"), (Pieces{"\x01", "\x02z"}));
    EXPECT_EQ(pieces_of("\x01\x02 "), (Pieces{"\x01\x02", " "}));
}

TEST(PreTokenizerTest, NoBytesAreLostWhateverTheyAre) {
    std::mt19937 random(1);
    constexpr std::string_view kAlphabet =
        "aZ 1!\n\r\t\xE4\xB8\x80\xE3\x83\xBB\xFF\xC3\xA9\xF0\x01";
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (auto left = random() % 24; left > 0; --left) {
            text += round % 2 ? static_cast<char>(random() & 0xFF)
                              : kAlphabet[random() % kAlphabet.size()];
        }
        std::string joined;
        for (const std::string& piece : pieces_of(text)) joined += piece;
        ASSERT_EQ(joined, text);
    }
}

}  // namespace
}  // namespace sluice::text
