#include "text/streaming_detokenizer.h"

#include <random>

#include "tests/text/fixtures.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

using Ids = std::vector<TokenId>;

TEST(StreamingDetokenizerTest, ACharacterSpreadOverTokensComesOutWhole) {
    StreamingDetokenizer stream(tiny_tokenizer());
    EXPECT_EQ(stream.push(0xF0), "");
    EXPECT_EQ(stream.push(0x9F), "");
    EXPECT_EQ(stream.push(0x98), "");
    EXPECT_TRUE(stream.inside_character());
    EXPECT_EQ(stream.push(0x80), "😀");
    EXPECT_FALSE(stream.inside_character());
    EXPECT_EQ(stream.finish(), "");
}

TEST(StreamingDetokenizerTest, BytesThatCanNoLongerBeACharacterDoNotHoldTextBack) {
    StreamingDetokenizer stream(tiny_tokenizer());
    EXPECT_EQ(stream.push(0xFF), "\uFFFD");
    EXPECT_EQ(stream.push(0xE4), "");
    EXPECT_EQ(stream.push('x'), "\uFFFDx");
    EXPECT_EQ(stream.push(0xE4), "");
    EXPECT_EQ(stream.push(301), "\uFFFD<user>");
}

TEST(StreamingDetokenizerTest, TheEndFlushesWhatIsLeftAndStartsAfresh) {
    StreamingDetokenizer stream(tiny_tokenizer());
    EXPECT_EQ(stream.push(0xE4), "");
    EXPECT_EQ(stream.push(0xB8), "");
    EXPECT_EQ(stream.finish(), "\uFFFD");
    EXPECT_EQ(stream.finish(), "");
    EXPECT_EQ(stream.push(259), "hello");
}

TEST(StreamingDetokenizerTest, AModelThatWritesTheReplacementCharacterIsNotHeldBack) {
    StreamingDetokenizer stream(tiny_tokenizer());
    EXPECT_EQ(stream.push(0xEF), "");
    EXPECT_EQ(stream.push(0xBF), "");
    EXPECT_EQ(stream.push(0xBD), "\uFFFD");
}

TEST(StreamingDetokenizerTest, IdsThatAreNoTokensAddNothing) {
    StreamingDetokenizer stream(tiny_tokenizer());
    EXPECT_EQ(stream.push(0xE4), "");
    EXPECT_EQ(stream.push(280), "");
    EXPECT_EQ(stream.push(-1), "");
    EXPECT_EQ(stream.push(0xB8), "");
    EXPECT_EQ(stream.push(0x96), "世");
}

TEST(StreamingDetokenizerTest, AllPiecesJoinedAreTheDecodedTextAndEachIsValid) {
    std::mt19937 random(5);
    const Tokenizer tokenizer = tokenizer_from_json(krill_file("tokenizer.json"));
    for (int round = 0; round < 3'000; ++round) {
        Ids ids;
        const std::uint32_t range = round % 2 ? 300 : 4100;  // Bytes mostly, or any token.
        for (auto left = random() % 40; left > 0; --left) {
            ids.push_back(static_cast<TokenId>(random() % range));
        }
        StreamingDetokenizer stream(tokenizer);
        std::string joined;
        for (const TokenId id : ids) {
            const std::string piece = stream.push(id);
            ASSERT_TRUE(is_valid_utf8(piece));
            joined += piece;
        }
        joined += stream.finish();
        ASSERT_EQ(joined, replace_invalid_utf8(tokenizer.decode(ids)));
    }
}

}  // namespace
}  // namespace sluice::text
