#include "protocol/prompt_tokens.h"

#include "text/byte_alphabet.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace sluice::protocol {
namespace {

constexpr TokenId kMerged = 256;  ///< "ab"
constexpr TokenId kUser = 257;
constexpr TokenId kMark = 258;

/// The 256 bytes by their value, one merge and two control tokens.
text::Tokenizer make_tokenizer() {
    text::VocabularyData data;
    for (int byte = 0; byte < 256; ++byte) {
        data.tokens.emplace_back();
        text::append_utf8(data.tokens.back(),
                          text::spelling_of_byte(static_cast<std::uint8_t>(byte)));
    }
    data.tokens.emplace_back("ab");
    data.merges = {"a b"};
    data.added = {{.id = kUser, .content = "<U>", .special = true},
                  {.id = kMark, .content = "<x>", .special = true}};
    auto tokenizer = text::Tokenizer::create(data);
    EXPECT_TRUE(tokenizer) << tokenizer.error().to_string();
    return *std::move(tokenizer);
}

TEST(PromptTokensTest, ControlSegmentsAreTheirTokens) {
    Prompt prompt;
    prompt.add_control("<U>");
    prompt.add_text("ab");
    prompt.add_control("<x>");
    EXPECT_EQ(*tokenize(prompt, make_tokenizer()), (std::vector<TokenId>{kUser, kMerged, kMark}));
}

TEST(PromptTokensTest, TextThatSpellsAControlTokenStaysText) {
    Prompt prompt;
    prompt.add_text("<U>");
    EXPECT_EQ(*tokenize(prompt, make_tokenizer()), (std::vector<TokenId>{'<', 'U', '>'}));
}

TEST(PromptTokensTest, AControlTokenThatTheVocabularyLacksIsNamed) {
    Prompt prompt;
    prompt.add_control("<Z>");
    const auto ids = tokenize(prompt, make_tokenizer());
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().code(), ErrorCode::kUnsupported);
    EXPECT_NE(ids.error().message().find("<Z>"), std::string::npos);
}

TEST(PromptTokensTest, AnOptionalControlTokenIsATokenIfItIsThere) {
    Prompt prompt;
    prompt.add_control("<x>", SegmentKind::kOptionalControl);
    EXPECT_EQ(*tokenize(prompt, make_tokenizer()), (std::vector<TokenId>{kMark}));
}

TEST(PromptTokensTest, AnOptionalControlTokenThatIsMissingMergesWithTheTextAroundIt) {
    Prompt prompt;
    prompt.add_text("a");
    prompt.add_control("b", SegmentKind::kOptionalControl);
    EXPECT_EQ(*tokenize(prompt, make_tokenizer()), (std::vector<TokenId>{kMerged}));
}

TEST(PromptTokensTest, ImagesAreRefused) {
    Prompt prompt;
    prompt.segments.push_back({SegmentKind::kImage, "<image>"});
    EXPECT_EQ(tokenize(prompt, make_tokenizer()).error().code(), ErrorCode::kUnsupported);
}

TEST(PromptTokensTest, WhatIsOwnBeginsAtItsFirstToken) {
    Prompt prompt;
    prompt.add_control("<x>");
    prompt.add_text("abc");
    prompt.begin_own();
    prompt.add_control("<U>");
    prompt.begin_own();  // Again: nothing changes.
    prompt.add_text("ab");
    const auto tokens = tokenize_prompt(prompt, make_tokenizer());
    ASSERT_TRUE(tokens);
    EXPECT_EQ(tokens->ids, (std::vector<TokenId>{kMark, kMerged, 'c', kUser, kMerged}));
    EXPECT_EQ(tokens->own_from, 3U);
}

TEST(PromptTokensTest, WithoutAnythingOwnAllOfItIsShared) {
    Prompt prompt;
    prompt.add_control("<x>");
    prompt.add_text("ab");
    EXPECT_EQ(tokenize_prompt(prompt, make_tokenizer())->own_from, 2U);
    prompt.begin_own();
    EXPECT_EQ(tokenize_prompt(prompt, make_tokenizer())->own_from, 2U);
}

// "a" of the system and "b" of the user are one token: whoever knows it knows the user's text.
TEST(PromptTokensTest, TextThatIsEncodedTogetherWithOwnTextIsOwn) {
    Prompt merged;
    merged.add_control("<x>");
    merged.add_text("ca");
    merged.begin_own();
    merged.add_text("b");
    EXPECT_EQ(tokenize_prompt(merged, make_tokenizer())->own_from, 1U);
    Prompt optional;
    optional.add_control("<x>");
    optional.add_text("ca");
    optional.begin_own();
    optional.add_control("b", SegmentKind::kOptionalControl);
    EXPECT_EQ(tokenize_prompt(optional, make_tokenizer())->own_from, 1U);
}

TEST(PromptTokensTest, AnEmptyPromptHasNoTokens) {
    EXPECT_TRUE(tokenize(Prompt{}, make_tokenizer())->empty());
}

}  // namespace
}  // namespace sluice::protocol
