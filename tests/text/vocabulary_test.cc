#include "text/vocabulary.h"

#include "tests/text/fixtures.h"

namespace sluice::text {
namespace {

GgufVocabulary small() {
    return {.model = "gpt2",
            .pre = "deepseek-v3",
            .tokens = {"<s>", "a", "<user>", "[PAD3]"},
            .merges = {},
            .token_types = {3, 1, 4, 5},
            .bos = 0,
            .eos = {},
            .pad = {}};
}

TEST(VocabularyTest, TheTypeOfAGgufTokenDecidesWhatItIs) {
    const auto data = vocabulary_from_gguf(small());
    ASSERT_TRUE(data);
    EXPECT_EQ(data->tokens, (std::vector<std::string>{"", "a", "", ""}));
    EXPECT_EQ(data->added,
              (std::vector<AddedToken>{{.id = 0, .content = "<s>", .special = true},
                                       {.id = 2, .content = "<user>", .special = false}}));
    EXPECT_EQ(data->bos, 0);
}

TEST(VocabularyTest, AnotherKindOfTokenizerIsRefusedByTheKeyThatNamesIt) {
    GgufVocabulary gguf = small();
    gguf.model = "llama";
    EXPECT_EQ(vocabulary_from_gguf(gguf).error().place(), "tokenizer.ggml.model");
    gguf = small();
    gguf.pre = "llama-bpe";
    EXPECT_EQ(vocabulary_from_gguf(gguf).error().place(), "tokenizer.ggml.pre");
    gguf = small();
    gguf.token_types.pop_back();
    EXPECT_EQ(vocabulary_from_gguf(gguf).error().place(), "tokenizer.ggml.token_type");
    gguf = small();
    gguf.token_types[1] = 6;
    EXPECT_EQ(vocabulary_from_gguf(gguf).error().place(), "tokenizer.ggml.token_type[1]");
}

TEST(VocabularyTest, AQuotedSpellingIsShortAndPrintable) {
    EXPECT_EQ(quoted_spelling("a\nb\xFF"), "\"a?b\uFFFD\"");
    EXPECT_EQ(quoted_spelling(std::string(100, 'x')), "\"" + std::string(48, 'x') + "...\"");
}

}  // namespace
}  // namespace sluice::text
