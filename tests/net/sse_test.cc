#include "net/sse.h"

#include <random>

namespace sluice::net {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

Events parse(std::initializer_list<std::string_view> chunks) {
    SseParser parser;
    Events events;
    for (const std::string_view chunk : chunks) {
        const auto fed = parser.feed(chunk, [&](const SseParser::Event& event) {
            events.emplace_back(event.name, event.data);
        });
        EXPECT_TRUE(fed.has_value());
    }
    return events;
}

/// The stream in one piece, in single bytes, and cut in three at every pair of places.
void expect_events(std::string_view stream, const Events& expected) {
    EXPECT_EQ(parse({stream}), expected);
    for (std::size_t i = 0; i <= stream.size(); ++i) {
        for (std::size_t j = i; j <= stream.size(); ++j) {
            ASSERT_EQ(parse({stream.substr(0, i), stream.substr(i, j - i), stream.substr(j)}),
                      expected)
                << "cut at " << i << " and " << j;
        }
    }
}

TEST(SseParserTest, EveryKindOfLineEndMeansTheSame) {
    expect_events("data: a\n\ndata: b\n\n", {{"", "a"}, {"", "b"}});
    expect_events("data: a\r\n\r\ndata: b\r\n\r\n", {{"", "a"}, {"", "b"}});
    expect_events("data: a\r\rdata: b\r\r", {{"", "a"}, {"", "b"}});
    expect_events("data: a\r\n\rdata: b\n\r\n", {{"", "a"}, {"", "b"}});
}

TEST(SseParserTest, OneSpaceAfterTheColonIsNotData) {
    expect_events("data:a\n\ndata: a\n\ndata:  a\n\n", {{"", "a"}, {"", "a"}, {"", " a"}});
}

TEST(SseParserTest, LinesOfDataAreJoinedByLineFeeds) {
    expect_events("data: a\ndata\ndata: b\n\n", {{"", "a\n\nb"}});
}

TEST(SseParserTest, ANameBelongsToItsEventOnly) {
    expect_events("event: ping\ndata: 1\n\ndata: 2\n\n", {{"ping", "1"}, {"", "2"}});
}

TEST(SseParserTest, AnEventWithoutDataIsNone) {
    expect_events("event: ping\n\nid: 3\nretry: 10\n: comment\nother: x\n\n\n\n", {});
    expect_events("data\n\n", {{"", ""}});
}

TEST(SseParserTest, AByteOrderMarkCountsOnlyAtTheStart) {
    expect_events(
        "\xEF\xBB\xBF"
        "data: a\n\n\xEF\xBB\xBF"
        "data: b\n\n",
        {{"", "a"}});
}

TEST(SseParserTest, CharactersMayBeCutAnywhere) {
    expect_events("data: \xE6\xB7\xB1\xF0\x9F\x90\xB3\n\n", {{"", "\xE6\xB7\xB1\xF0\x9F\x90\xB3"}});
}

TEST(SseParserTest, AnEventThatIsCutShortIsNotReported) {
    expect_events("data: a\n\ndata: b\n", {{"", "a"}});
}

TEST(SseParserTest, AnEventPastItsLimitIsAnErrorForGood) {
    const std::string line = "data: " + std::string(1024 * 1024, 'x') + "\n";
    SseParser parser;
    const auto ignore = [](const SseParser::Event&) { FAIL(); };
    Result<void> fed;
    for (int i = 0; i < 20 && fed; ++i) fed = parser.feed(line, ignore);
    ASSERT_FALSE(fed.has_value());
    EXPECT_EQ(fed.error().code(), ErrorCode::kExhausted);
    EXPECT_FALSE(parser.feed("\n\n", ignore).has_value());
}

TEST(SseParserTest, ALineThatNeverEndsIsAnError) {
    SseParser parser;
    const std::string part(1024 * 1024, ':');
    Result<void> fed;
    for (int i = 0; i < 20 && fed; ++i) fed = parser.feed(part, [](const SseParser::Event&) {});
    EXPECT_FALSE(fed.has_value());
}

TEST(SseEventTest, IsWrittenAsTheStandardShowsIt) {
    EXPECT_EQ(sse_event("{}"), "data: {}\n\n");
    EXPECT_EQ(sse_event("a\nb", "delta"), "event: delta\ndata: a\ndata: b\n\n");
    EXPECT_EQ(sse_event(""), "data: \n\n");
    EXPECT_EQ(sse_comment("still here"), ": still here\n\n");
    EXPECT_EQ(sse_event("x", "a\r\nb"), "event: a  b\ndata: x\n\n");
}

// Whatever is sent comes out again, whatever the chunking.
TEST(SseEventTest, RandomEventsSurviveTheWay) {
    std::mt19937 random(7);
    constexpr std::string_view kAlphabet = "ab :\n\xC3\xA9\xEF\xBB\xBF";
    for (int round = 0; round < 300; ++round) {
        Events sent;
        std::string stream;
        for (unsigned i = random() % 5; i > 0; --i) {
            std::string data;
            for (unsigned n = random() % 12; n > 0; --n)
                data += kAlphabet[random() % kAlphabet.size()];
            const std::string name = random() % 2 == 0 ? "" : "delta";
            stream += sse_event(data, name);
            if (random() % 3 == 0) stream += sse_comment(data);
            sent.emplace_back(name, data);
        }
        SseParser parser;
        Events received;
        std::string_view rest = stream;
        while (!rest.empty()) {
            const std::string_view chunk = rest.substr(0, 1 + random() % 7);
            rest.remove_prefix(chunk.size());
            ASSERT_TRUE(parser
                            .feed(chunk,
                                  [&](const SseParser::Event& event) {
                                      received.emplace_back(event.name, event.data);
                                  })
                            .has_value());
        }
        ASSERT_EQ(received, sent);
    }
}

}  // namespace
}  // namespace sluice::net
