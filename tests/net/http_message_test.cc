#include "net/http_message.h"

#include "net/http_head.h"
#include "net/output_queue.h"
#include "net/url.h"

namespace sluice::net {
namespace {

TEST(HttpHeadersTest, NamesCompareWithoutCase) {
    HttpHeaders headers{{"Content-Type", "a"}, {"X-Id", "1"}, {"x-id", "2"}};
    EXPECT_EQ(headers.find("content-type"), "a");
    EXPECT_EQ(headers.find("X-ID"), "1");
    EXPECT_EQ(headers.find("none"), std::nullopt);
    headers.set("X-ID", "3");
    EXPECT_EQ(headers.size(), 2U);
    EXPECT_EQ(headers.find("x-id"), "3");
}

TEST(ResponseHeadTest, AValueCannotStartAnotherMessage) {
    const HttpHeaders headers{{"X-Echo", "a\r\nSet-Cookie: b"}, {"bad name", "x"}, {"", "y"}};
    EXPECT_EQ(response_head({.status = 200, .body_bytes = 3}, headers),
              "HTTP/1.1 200 OK\r\nX-Echo: a  Set-Cookie: b\r\nContent-Length: 3\r\n\r\n");
}

TEST(ResponseHeadTest, FramingBelongsToTheServer) {
    const HttpHeaders headers{
        {"Content-Length", "9"}, {"transfer-encoding", "x"}, {"CONNECTION", "y"}};
    EXPECT_EQ(response_head({.status = 404,
                             .framing = BodyFraming::kChunked,
                             .after = AfterAnswer::kClose,
                             .date = "today"},
                            headers),
              "HTTP/1.1 404 Not Found\r\nDate: today\r\nTransfer-Encoding: chunked\r\n"
              "Connection: close\r\n\r\n");
}

// The example of RFC 9110, section 5.6.7.
TEST(HttpDateTest, IsWrittenAsTheStandardShowsIt) {
    EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(UrlTest, PartsAreFound) {
    const auto url = parse_url("http://127.0.0.1:8080/v1/models?limit=2#top");
    ASSERT_TRUE(url.has_value());
    EXPECT_EQ(url->host, "127.0.0.1");
    EXPECT_EQ(url->port, 8080);
    EXPECT_EQ(url->authority, "127.0.0.1:8080");
    EXPECT_EQ(url->target, "/v1/models?limit=2");
}

TEST(UrlTest, PortAndPathHaveDefaults) {
    const auto url = parse_url("HTTP://example.com");
    ASSERT_TRUE(url.has_value());
    EXPECT_EQ(url->port, 80);
    EXPECT_EQ(url->target, "/");
    EXPECT_EQ(parse_url("http://h?q=1")->target, "/?q=1");
}

TEST(UrlTest, Version6AddressesStandInBrackets) {
    const auto url = parse_url("http://[::1]:81/x");
    ASSERT_TRUE(url.has_value());
    EXPECT_EQ(url->host, "::1");
    EXPECT_EQ(url->port, 81);
    EXPECT_EQ(url->authority, "[::1]:81");
    EXPECT_EQ(parse_url("http://[::1]")->port, 80);
}

TEST(UrlTest, MalformedOnesAreRefused) {
    for (const char* text : {"", "/v1", "http://", "http://:80/", "http://h:/", "http://h:0/",
                             "http://h:65536/", "http://h:8x/", "http://u:p@h/", "http://h/a b",
                             "http://h/\r\nX: y", "http://[::1", "http://[::1]x/", "http://[]/"}) {
        const auto url = parse_url(text);
        ASSERT_FALSE(url.has_value()) << text;
        EXPECT_EQ(url.error().code(), ErrorCode::kInvalid) << text;
    }
    EXPECT_EQ(parse_url("ftp://h/").error().code(), ErrorCode::kUnsupported);
    EXPECT_EQ(parse_url("HTTPS://h/")->port, 443);
    EXPECT_TRUE(parse_url("https://h:8443/")->secure);
    EXPECT_FALSE(parse_url("http://h:443/")->secure);
}

TEST(OutputQueueTest, GivesBackEveryByteInOrderWhateverTheSteps) {
    for (const std::size_t step : {1UL, 3UL, 5000UL, 100'000UL}) {
        OutputQueue queue;
        std::string all;
        for (int i = 0; i < 40; ++i) {
            std::string piece(static_cast<std::size_t>(i * i * 7), static_cast<char>('a' + i % 26));
            all += piece;
            queue.add("<");
            all.insert(all.size() - piece.size(), "<");
            queue.move_in(std::move(piece));
        }
        EXPECT_EQ(queue.bytes(), all.size());
        std::string out;
        while (!queue.empty()) {
            std::string_view pieces[4];
            const std::size_t count = queue.front(pieces);
            std::string gathered;
            for (std::size_t i = 0; i < count; ++i) gathered += pieces[i];
            const std::size_t taken = std::min(step, gathered.size());
            out += gathered.substr(0, taken);
            queue.drop(taken);
        }
        EXPECT_EQ(out, all);
    }
}

}  // namespace
}  // namespace sluice::net
