#include "text/vocabulary_json.h"

#include <boost/json.hpp>
#include <sstream>

#include "base/limits.h"
#include "tests/text/fixtures.h"

namespace sluice::text {
namespace {

namespace json = boost::json;

// DeepSeek V3's pipeline around three tokens.
constexpr std::string_view kSmall = R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 7, "content": "<｜begin▁of▁sentence｜>", "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false, "special": true},
    {"id": 9, "content": "<｜User｜>", "special": false}],
  "normalizer": {"type": "Sequence", "normalizers": []},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": false},
    {"type": "Split", "pattern": {"Regex": "[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+"},
     "behavior": "Isolated", "invert": false},
    {"type": "Split", "pattern": {"Regex": "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},
     "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
    "vocab": {"a": 0, "b": 1, "ab": 3}, "merges": ["a b"]}
})";

/// The member or element of `parent` that `key` names; a new member if there is none.
json::value& child(json::value& parent, const std::string& key) {
    if (parent.is_object()) return parent.as_object()[key];
    return parent.as_array().at(std::stoul(key));
}

/// Puts `value` where the JSON Pointer says and reads the result.
Result<VocabularyData> parse_with(std::string_view pointer, std::string_view value) {
    json::value file = json::parse(kSmall);
    json::value* target = &file;
    std::istringstream keys{std::string(pointer.substr(1))};
    for (std::string key; std::getline(keys, key, '/');) target = &child(*target, key);
    *target = json::parse(value);
    return parse_tokenizer_json(json::serialize(file));
}

TEST(VocabularyJsonTest, TokensMergesAndAddedTokensComeOutAsTheFileHasThem) {
    const auto data = parse_tokenizer_json(kSmall);
    ASSERT_TRUE(data) << data.error().to_string();
    EXPECT_EQ(data->tokens, (std::vector<std::string>{"a", "b", "", "ab"}));
    EXPECT_EQ(data->merges, std::vector<std::string>{"a b"});
    ASSERT_EQ(data->added.size(), 2U);
    EXPECT_EQ(data->added[1], (AddedToken{.id = 9, .content = "<｜User｜>", .special = false}));
    EXPECT_EQ(data->bos, 7);
    EXPECT_EQ(data->eos, std::nullopt);
}

TEST(VocabularyJsonTest, MergesMayBePairsAsNewerFilesHaveThem) {
    const auto data = parse_with("/model/merges", R"([["a", "b"]])");
    ASSERT_TRUE(data) << data.error().to_string();
    EXPECT_EQ(data->merges, std::vector<std::string>{"a b"});
}

struct BadFile {
    const char* pointer;
    const char* value;
    const char* place;
};

TEST(VocabularyJsonTest, WhatWouldChangeAnIdIsRefusedByName) {
    const std::vector<BadFile> files = {
        {"/truncation", R"({"max_length": 5})", "truncation"},
        {"/padding", "{}", "padding"},
        {"/normalizer", R"({"type": "NFC"})", "normalizer"},
        {"/normalizer/normalizers", R"([{"type": "NFC"}])", "normalizer"},
        {"/pre_tokenizer", "null", "pre_tokenizer.type"},
        {"/pre_tokenizer/type", R"("ByteLevel")", "pre_tokenizer.type"},
        {"/pre_tokenizer/pretokenizers", "[]", "pre_tokenizer.pretokenizers"},
        {"/pre_tokenizer/pretokenizers/0/type", R"("Digits")",
         "pre_tokenizer.pretokenizers[0].type"},
        {"/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("\\p{N}")",
         "pre_tokenizer.pretokenizers[0].pattern.Regex"},
        {"/pre_tokenizer/pretokenizers/1/pattern", R"({"String": "x"})",
         "pre_tokenizer.pretokenizers[1].pattern.Regex"},
        {"/pre_tokenizer/pretokenizers/2/behavior", R"("Removed")",
         "pre_tokenizer.pretokenizers[2].behavior"},
        {"/pre_tokenizer/pretokenizers/2/invert", "true", "pre_tokenizer.pretokenizers[2].invert"},
        {"/pre_tokenizer/pretokenizers/3/use_regex", "true",
         "pre_tokenizer.pretokenizers[3].use_regex"},
        {"/pre_tokenizer/pretokenizers/3/add_prefix_space", "true",
         "pre_tokenizer.pretokenizers[3].add_prefix_space"},
        {"/decoder", "null", "decoder.type"},
        {"/decoder/type", R"("WordPiece")", "decoder.type"},
        {"/model/type", R"("Unigram")", "model.type"},
        {"/model/dropout", "0.1", "model.dropout"},
        {"/model/unk_token", R"("<unk>")", "model.unk_token"},
        {"/model/continuing_subword_prefix", R"("##")", "model.continuing_subword_prefix"},
        {"/model/end_of_word_suffix", R"("</w>")", "model.end_of_word_suffix"},
        {"/model/byte_fallback", "true", "model.byte_fallback"},
        {"/model/ignore_merges", "true", "model.ignore_merges"},
        {"/added_tokens/0/lstrip", "true", "added_tokens[0].lstrip"},
        {"/added_tokens/1/single_word", "true", "added_tokens[1].single_word"}};
    for (const BadFile& file : files) {
        const auto data = parse_with(file.pointer, file.value);
        ASSERT_FALSE(data) << file.pointer;
        EXPECT_EQ(data.error().place(), file.place);
        EXPECT_EQ(data.error().code(), ErrorCode::kUnsupported) << file.pointer;
    }
}

TEST(VocabularyJsonTest, AWrongTypeOrNumberIsAnErrorWithItsPlace) {
    const std::vector<BadFile> files = {
        {"/model", "[]", "model"},
        {"/model/vocab", "[]", "model.vocab"},
        {"/model/vocab/b", "-1", "model.vocab[\"b\"]"},
        {"/model/vocab/b", "1.0", "model.vocab[\"b\"]"},
        {"/model/vocab/b", "\"1\"", "model.vocab[\"b\"]"},
        {"/model/vocab/b", "18446744073709551615", "model.vocab[\"b\"]"},
        {"/model/vocab/b", "1048576", "model.vocab[\"b\"]"},
        {"/model/vocab/b", "0", "model.vocab[\"b\"]"},  // Taken by "a".
        {"/model/vocab", R"({"": 0})", "model.vocab[\"\"]"},
        {"/model/merges", "{}", "model.merges"},
        {"/model/merges", "[1]", "model.merges[0]"},
        {"/model/merges", R"(["a b", ["a"]])", "model.merges[1]"},
        {"/model/merges", R"([["a", 1]])", "model.merges[0]"},
        {"/added_tokens", "{}", "added_tokens"},
        {"/added_tokens/0", "5", "added_tokens[0]"},
        {"/added_tokens/1", R"({"content": "x"})", "added_tokens[1].id"},
        {"/added_tokens/1/id", "-3", "added_tokens[1].id"},
        {"/added_tokens/1/id", "null", "added_tokens[1].id"},
        {"/added_tokens/1/content", "7", "added_tokens[1].content"},
        {"/added_tokens/1/special", "1", "added_tokens[1].special"}};
    for (const BadFile& file : files) {
        const auto data = parse_with(file.pointer, file.value);
        ASSERT_FALSE(data) << file.pointer << " " << file.value;
        EXPECT_EQ(data.error().place(), file.place) << file.value;
    }
}

TEST(VocabularyJsonTest, TextThatIsNotJsonIsAnErrorWithItsLine) {
    const std::vector<std::pair<std::string, std::string>> texts = {
        {"", "line 1"},        {"{\n\"a\": }", "line 2"}, {"{}\n\nx", "line 3"},
        {"[1, 2", "line 1"},   {"\n\"\xFF\"", "line 2"},  {"[]", "line 1"},
        {"\"text\"", "line 1"}};
    for (const auto& [text, place] : texts) {
        const auto data = parse_tokenizer_json(text);
        ASSERT_FALSE(data) << text;
        EXPECT_EQ(data.error().place(), place) << text;
    }
    EXPECT_EQ(parse_tokenizer_json(std::string(10'000, '[')).error().place(), "line 1");
}

TEST(VocabularyJsonTest, AFileBeyondTheLimitIsRefusedUnread) {
    // Only the size is looked at: the view's bytes are never touched.
    const std::string_view large(kSmall.data(), limits::kTokenizerFileBytes + 1);
    EXPECT_EQ(parse_tokenizer_json(large).error().code(), ErrorCode::kOutOfRange);
}

}  // namespace
}  // namespace sluice::text
