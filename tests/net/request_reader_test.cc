#include "net/request_reader.h"

#include "base/limits.h"

namespace sluice::net {
namespace {

using Status = RequestReader::Status;

constexpr RequestReader::Limits kLimits{.header_bytes = 4096, .body_bytes = 1000};

struct Outcome {
    std::vector<HttpRequest> requests;
    int failed = 0;  ///< The status of the refusal, or 0.
    std::string message;
};

Outcome read(std::string_view wire, std::size_t piece, RequestReader::Limits limits = kLimits) {
    RequestReader reader(limits);
    Outcome outcome;
    while (!wire.empty()) {
        Status status = reader.feed(wire.substr(0, piece));
        wire.remove_prefix(std::min(piece, wire.size()));
        while (status == Status::kComplete) {
            outcome.requests.push_back(reader.take_request());
            status = reader.resume();
        }
        if (status == Status::kFailed) {
            outcome.failed = reader.failure().status;
            outcome.message = reader.failure().message;
            break;
        }
    }
    return outcome;
}

int refusal(std::string_view wire) { return read(wire, wire.size()).failed; }

/// Reads `wire` in one piece and byte by byte; both must give the one request.
HttpRequest the_request(std::string_view wire) {
    const Outcome whole = read(wire, wire.size());
    const Outcome bytes = read(wire, 1);
    EXPECT_EQ(whole.failed, 0) << whole.message;
    EXPECT_EQ(bytes.failed, 0) << bytes.message;
    if (whole.requests.size() != 1 || bytes.requests.size() != 1) {
        ADD_FAILURE() << whole.requests.size() << " and " << bytes.requests.size() << " requests";
        return {};
    }
    EXPECT_EQ(whole.requests[0].body, bytes.requests[0].body);
    EXPECT_EQ(whole.requests[0].path, bytes.requests[0].path);
    return whole.requests[0];
}

TEST(RequestReaderTest, PartsOfARequestAreFound) {
    const HttpRequest request = the_request(
        "POST /v1/a%20b?x=%31 HTTP/1.1\r\nHost: h\r\nX-Id:  7 \r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/a b");
    EXPECT_EQ(request.query, "x=%31");
    EXPECT_EQ(request.headers.find("x-id"), "7");
    EXPECT_EQ(request.body, "hello");
}

TEST(RequestReaderTest, ChunksAreJoinedAndExtensionsAndTrailersIgnored) {
    const HttpRequest request = the_request(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
        "5;a=b;c=\"d\"\r\nhello\r\n1\r\n!\r\n0\r\nX-Trailer: 1\r\nHost: other\r\n\r\n");
    EXPECT_EQ(request.body, "hello!");
    EXPECT_EQ(request.headers.find("x-trailer"), std::nullopt);
}

TEST(RequestReaderTest, AnEmptyChunkedBodyIsEmpty) {
    EXPECT_EQ(
        the_request("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            .body,
        "");
}

TEST(RequestReaderTest, PipelinedRequestsComeInOrder) {
    const std::string wire =
        "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
        "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
        "\r\n\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n";
    for (std::size_t piece = 1; piece <= wire.size(); ++piece) {
        const Outcome outcome = read(wire, piece);
        ASSERT_EQ(outcome.requests.size(), 3U) << outcome.message;
        EXPECT_EQ(outcome.requests[0].path, "/1");
        EXPECT_EQ(outcome.requests[1].body, "ab");
        EXPECT_EQ(outcome.requests[2].path, "/3");
    }
}

TEST(RequestReaderTest, AFullUrlAndAStarAreTargetsToo) {
    EXPECT_EQ(the_request("GET http://h:80/x?y HTTP/1.1\r\nHost: h\r\n\r\n").path, "/x");
    EXPECT_EQ(the_request("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").path, "*");
}

TEST(RequestReaderTest, KeepAliveFollowsTheVersion) {
    const auto keep_alive = [](std::string_view wire) {
        RequestReader reader(kLimits);
        EXPECT_EQ(reader.feed(wire), Status::kComplete);
        return reader.keep_alive();
    };
    EXPECT_TRUE(keep_alive("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    EXPECT_FALSE(keep_alive("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    EXPECT_FALSE(keep_alive("GET / HTTP/1.0\r\n\r\n"));
    EXPECT_TRUE(keep_alive("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

TEST(RequestReaderTest, ContinueIsAskedForOnceAndOnlyBeforeTheBody) {
    const std::string head =
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    RequestReader reader(kLimits);
    EXPECT_EQ(reader.feed(head), Status::kNeedMore);
    EXPECT_TRUE(reader.take_continue());
    EXPECT_FALSE(reader.take_continue());
    RequestReader eager(kLimits);
    EXPECT_EQ(eager.feed(head + "a"), Status::kNeedMore);
    EXPECT_FALSE(eager.take_continue());
}

TEST(RequestReaderTest, PhasesTellWhatIsThere) {
    RequestReader reader(kLimits);
    EXPECT_EQ(reader.phase(), RequestReader::Phase::kIdle);
    EXPECT_EQ(reader.feed("\r\n"), Status::kNeedMore);
    EXPECT_EQ(reader.phase(), RequestReader::Phase::kIdle);
    EXPECT_EQ(reader.feed("P"), Status::kNeedMore);
    EXPECT_EQ(reader.phase(), RequestReader::Phase::kHeader);
    EXPECT_EQ(reader.feed("OST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n"),
              Status::kNeedMore);
    EXPECT_EQ(reader.phase(), RequestReader::Phase::kBody);
    EXPECT_EQ(reader.feed("ab"), Status::kComplete);
    EXPECT_EQ(reader.phase(), RequestReader::Phase::kIdle);
}

TEST(RequestReaderTest, TwoVoicesAboutTheLengthAreRefused) {
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: "
                      "chunked\r\n\r\n"),
              400);
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: "
                      "1\r\n\r\n"),
              400);
    EXPECT_EQ(
        refusal("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        400);
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 2\r\n\r\n"), 400);
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                      "chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
              400);
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
              400);
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                      "identity\r\nContent-Length: 1\r\n\r\n"),
              400);
    EXPECT_EQ(refusal("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestReaderTest, LengthsThatAreNoNumbersAreRefused) {
    for (const char* length : {"-1", "+1", "0x1", "1 1", "", "99999999999999999999999"}) {
        EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::string(length) +
                          "\r\n\r\n"),
                  400)
            << length;
    }
}

TEST(RequestReaderTest, MalformedRequestLinesAreRefused) {
    for (const char* line :
         {"GARBAGE", "GET /", "GET / HTTP/2.0", "GET / HTTP/1.1 x", "GET  / HTTP/1.1",
          " GET / HTTP/1.1", "G@T / HTTP/1.1", "GET x HTTP/1.1", "GET /% HTTP/1.1",
          "GET /%zz HTTP/1.1", "GET /%00 HTTP/1.1", "GET /%0a HTTP/1.1", "CONNECT h:80 HTTP/1.1",
          "GET http://h HTTP/1.1"}) {
        EXPECT_EQ(refusal(std::string(line) + "\r\nHost: h\r\n\r\n"), 400) << line;
    }
    EXPECT_EQ(refusal("\x16\x03\x01\x02\x05\x01"), 400);  // A TLS client at the wrong door.
}

TEST(RequestReaderTest, MalformedFieldsAreRefused) {
    for (const std::string_view field : {"No colon", "Bad name: x", ": x", "X: a\r\n folded",
                                         "X: a\r\n\tfolded", "X: a\x01", "X : a"}) {
        EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: h\r\n" + std::string(field) + "\r\n\r\n"), 400)
            << field;
    }
}

TEST(RequestReaderTest, AFoldedFieldIsRefusedWhereverThePiecesEnd) {
    const std::string wire = "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n folded\r\n\r\n";
    for (std::size_t piece = 1; piece < wire.size(); ++piece) {
        const Outcome outcome = read(wire, piece);
        EXPECT_EQ(outcome.failed, 400) << piece;
        EXPECT_TRUE(outcome.requests.empty());
    }
}

TEST(RequestReaderTest, AHostIsNeededOnce) {
    EXPECT_EQ(refusal("GET / HTTP/1.1\r\n\r\n"), 400);
    EXPECT_EQ(refusal("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
    EXPECT_EQ(refusal("GET / HTTP/1.0\r\n\r\n"), 0);
}

TEST(RequestReaderTest, UnknownExpectationsAreRefused) {
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n"),
              417);
}

TEST(RequestReaderTest, AHeaderPastItsLimitIsRefusedInAnyShape) {
    const std::string start = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (const std::size_t piece : {1UL, 100UL, 100'000UL}) {
        EXPECT_EQ(read(start + "X: " + std::string(5000, 'x'), piece).failed, 431);
        EXPECT_EQ(read("GET /" + std::string(5000, 'x'), piece).failed, 431);
        std::string fields = start;
        while (fields.size() < 5000) fields += "X: " + std::string(90, 'y') + "\r\n";
        EXPECT_EQ(read(fields, piece).failed, 431);
        std::string lines;
        while (lines.size() < 5000) lines += "\r\n";
        EXPECT_EQ(read(lines, piece).failed, 431);
    }
}

TEST(RequestReaderTest, TooManyFieldsAreRefused) {
    std::string wire = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (std::size_t i = 0; i < limits::kHeaderFields; ++i) wire += "a:b\r\n";
    EXPECT_EQ(refusal(wire + "\r\n"), 431);
}

TEST(RequestReaderTest, AHeaderAtItsLimitIsFine) {
    std::string wire = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
    wire += std::string(kLimits.header_bytes - wire.size() - 4, 'x') + "\r\n\r\n";
    EXPECT_EQ(read(wire, wire.size()).requests.size(), 1U);
    EXPECT_EQ(read(wire, 1).requests.size(), 1U);
}

TEST(RequestReaderTest, ABodyPastItsLimitIsRefusedBeforeItIsRead) {
    EXPECT_EQ(refusal("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n"), 413);
    const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(refusal(chunked + "3e9\r\n"), 413);
    EXPECT_EQ(refusal(chunked + "ffffffffffffffff\r\n"), 413);
    EXPECT_EQ(refusal(chunked + "1ffffffffffffffff\r\n"), 400);
    EXPECT_EQ(refusal(chunked + "3e7\r\n" + std::string(999, 'x') + "\r\n2\r\n"), 413);
    EXPECT_EQ(the_request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" +
                          std::string(1000, 'x'))
                  .body.size(),
              1000U);
}

TEST(RequestReaderTest, ChunkFramingHasALimitOfItsOwn) {
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string long_extension = ";x=" + std::string(2 * limits::kChunkOverheadBytes, 'y');
    for (const std::size_t piece : {1UL, 1000UL, 1'000'000UL}) {
        EXPECT_EQ(read(head + "1" + long_extension, piece).failed, 400);
        EXPECT_EQ(read(head + "1" + long_extension + "\r\nx\r\n", piece).failed, 400);
        EXPECT_EQ(read(head + "0\r\nX: " + long_extension, piece).failed, 400);
        std::string many = head;
        for (int i = 0; i < 500; ++i) many += "1;x=" + std::string(100, 'y') + "\r\nz\r\n";
        EXPECT_EQ(read(many, piece).failed, 400);
    }
    std::string honest = head;
    for (int i = 0; i < 1000; ++i) honest += "1\r\nz\r\n";
    EXPECT_EQ(the_request(honest + "0\r\n\r\n").body.size(), 1000U);
}

TEST(RequestReaderTest, MalformedChunksAreRefused) {
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const char* body : {"x\r\nabc\r\n", "1\r\nabcd\r\n", "1\nabcde", "-1\r\na\r\n",
                             ";x\r\n1\r\n", "1 x\r\na\r\n", "0x1\r\na\r\n"}) {
        EXPECT_EQ(refusal(head + body + "\r\n\r\n"), 400) << body;
    }
}

TEST(RequestReaderTest, ALargeBodyGrowsWithWhatHasCome) {
    RequestReader reader({.header_bytes = 4096, .body_bytes = 1UL << 40});
    EXPECT_EQ(reader.feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000000\r\n\r\n"),
              Status::kNeedMore);
    EXPECT_EQ(reader.feed(std::string(100, 'x')), Status::kNeedMore);  // And no gigabytes reserved.
}

}  // namespace
}  // namespace sluice::net
