#include "net/sse_cutter.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "net/sse.h"

namespace sluice::net {
namespace {

struct Cut {
    std::string raw;                ///< All pieces together.
    std::vector<std::string> ends;  ///< The raw text of each.
    std::vector<std::string> data;
    bool failed = false;
};

Cut cut(std::string_view stream, std::size_t step) {
    Cut result;
    SseCutter cutter;
    for (std::size_t at = 0; at < stream.size() && !result.failed; at += step) {
        const auto fed = cutter.feed(stream.substr(at, step), [&](const SseCutter::Piece& piece) {
            result.raw += piece.raw;
            result.ends.emplace_back(piece.raw);
            if (piece.has_data) result.data.emplace_back(piece.data);
        });
        result.failed = !fed.has_value();
    }
    result.raw += cutter.rest();
    return result;
}

std::vector<std::string> parsed(std::string_view stream) {
    std::vector<std::string> data;
    SseParser parser;
    EXPECT_TRUE(parser.feed(stream, [&](const auto& event) { data.push_back(event.data); }));
    return data;
}

TEST(SseCutterTest, AnyChunkingGivesTheSamePiecesAndTheParsersData) {
    for (const std::string_view stream :
         {"data: a\n\ndata: b\n\n", "data:a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r",
          ": note\n\ndata: \n\ndata\n\n", "event: x\nid: 7\ndata: a\ndata: b\r\ndata: c\n\n",
          "\xEF\xBB\xBF"
          "data: \xE4\xBD\xA0\xE5\xA5\xBD\n\n",
          "\n\n\ndata: late\n\n", "data: [DONE]\n\ndata: {\"content\":\"[DONE]\"}\n\n",
          "data: cut off"}) {
        const Cut whole = cut(stream, stream.size());
        EXPECT_EQ(whole.raw, stream);
        EXPECT_EQ(whole.data, parsed(stream)) << stream;
        for (std::size_t step = 1; step < stream.size(); ++step) {
            const Cut pieces = cut(stream, step);
            EXPECT_EQ(pieces.raw, stream);
            EXPECT_EQ(pieces.data, whole.data) << stream << " in steps of " << step;
        }
    }
}

TEST(SseCutterTest, APieceEndsWithItsBlankLine) {
    const Cut result = cut("data: a\n\n: note\n\ndata: b\n\ndata: c", 5);
    EXPECT_EQ(result.ends, (std::vector<std::string>{"data: a\n\n", ": note\n\n", "data: b\n\n"}));
}

TEST(SseCutterTest, AnEventWithoutEndIsBounded) {
    SseCutter cutter;
    const std::string part(1024 * 1024, 'x');
    Result<void> fed;
    std::size_t bytes = 0;
    while (fed && bytes <= 2 * limits::kSseEventBytes) {
        fed = cutter.feed(part, [](const SseCutter::Piece&) { FAIL(); });
        bytes += part.size();
    }
    ASSERT_FALSE(fed.has_value());
    EXPECT_EQ(fed.error().code(), ErrorCode::kExhausted);
    EXPECT_LE(bytes, limits::kSseEventBytes + 2 * part.size());
    EXPECT_FALSE(cutter.feed("\n\n", [](const SseCutter::Piece&) { FAIL(); }).has_value());
}

}  // namespace
}  // namespace sluice::net
