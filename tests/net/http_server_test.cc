#include "net/http_server.h"

#include <sys/resource.h>

#include <stdexcept>

#include "tests/net/support.h"

namespace sluice::net {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::milliseconds;
using ::testing::Not;
using testing::RawListener;
using testing::RawSocket;
using testing::Signal;
using ::testing::StartsWith;
using testing::TestClient;
using testing::TestServer;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Answers with what it got: "GET /path body".
void echo(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    exchange->respond(
        HttpResponse::text(200, request.method + " " + request.path + " " + request.body));
}

std::string ask(std::uint16_t port, std::string_view wire) {
    RawSocket socket(port);
    EXPECT_TRUE(socket.send(wire));
    return socket.read_all();
}

TEST(HttpServerTest, AnAnswerHasItsLengthAndADate) {
    TestServer server(echo);
    RawSocket socket(server.port());
    socket.send("POST /a%20b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    const std::string answer = socket.read_answer();
    EXPECT_THAT(answer,
                StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 12\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nDate: "));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\nPOST /a b hi"));
    EXPECT_THAT(answer, Not(HasSubstr("Connection:")));
}

TEST(HttpServerTest, TheRequestNamesItsPeer) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond(HttpResponse::text(200, exchange->request().peer));
    });
    EXPECT_THAT(ask(server.port(), "GET / HTTP/1.0\r\n\r\n"), HasSubstr("\r\n\r\n127.0.0.1:"));
}

TEST(HttpServerTest, AThousandRequestsUseOneConnection) {
    TestServer server(echo);
    RawSocket socket(server.port());
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(socket.send(kGet));
        ASSERT_THAT(socket.read_answer(), HasSubstr("GET / "));
    }
    EXPECT_EQ(server.connections(), 1U);
}

TEST(HttpServerTest, PipelinedRequestsAreAnsweredInOrderOneAtATime) {
    std::vector<std::shared_ptr<HttpExchange>> waiting;
    Signal second;
    TestServer server([&](std::shared_ptr<HttpExchange> exchange) {
        EXPECT_TRUE(waiting.empty());
        if (exchange->request().path == "/2") second.set();
        waiting.push_back(std::move(exchange));
    });
    RawSocket socket(server.port());
    socket.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    const auto answer_one = [&] {
        std::optional<std::string> path;
        while (!path) {
            path = server.thread().call([&]() -> std::optional<std::string> {
                if (waiting.empty()) return std::nullopt;
                const auto exchange = waiting.back();
                waiting.pop_back();
                exchange->respond(HttpResponse::text(200, exchange->request().path));
                return exchange->request().path;
            });
        }
        return *path;
    };
    EXPECT_EQ(answer_one(), "/1");
    EXPECT_TRUE(second.wait());
    EXPECT_EQ(answer_one(), "/2");
    EXPECT_THAT(socket.read_answer(), HasSubstr("\r\n\r\n/1"));
    EXPECT_THAT(socket.read_answer(), HasSubstr("\r\n\r\n/2"));
}

TEST(HttpServerTest, ALongPipelineIsReadAsItIsAnswered) {
    TestServer server(echo);
    RawSocket socket(server.port());
    constexpr int kRequests = 20'000;  // Far more bytes than may be pipelined.
    std::thread sender([&] {
        std::string wire;
        for (int i = 0; i < kRequests; ++i) wire += kGet;
        EXPECT_TRUE(socket.send(wire));
    });
    int answers = 0;
    while (answers < kRequests && !socket.read_answer().empty()) ++answers;
    sender.join();
    EXPECT_EQ(answers, kRequests);
}

TEST(HttpServerTest, HeadHasTheLengthButNoBody) {
    TestServer server(echo);
    const std::string answer =
        ask(server.port(), "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\n"));
    EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST(HttpServerTest, Http10ClosesUnlessAskedToKeep) {
    TestServer server(echo);
    EXPECT_THAT(ask(server.port(), "GET / HTTP/1.0\r\n\r\n"), HasSubstr("Connection: close\r\n"));
    RawSocket socket(server.port());
    for (int i = 0; i < 2; ++i) {
        socket.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        EXPECT_THAT(socket.read_answer(), HasSubstr("Connection: keep-alive\r\n"));
    }
}

TEST(HttpServerTest, ExpectedContinueIsGivenBeforeTheBody) {
    TestServer server(echo);
    RawSocket socket(server.port());
    socket.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    socket.send("hi");
    EXPECT_THAT(socket.read_answer(), HasSubstr("PUT / hi"));
}

TEST(HttpServerTest, NoContentHasNeitherBodyNorLength) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond({.status = 204, .body = "ignored"});
    });
    const std::string answer =
        ask(server.port(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(answer, Not(HasSubstr("Content-Length")));
    EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST(HttpServerTest, AMistakeIsAnsweredInOpenAisShapeAndEndsTheConnection) {
    TestServer server([](const std::shared_ptr<HttpExchange>&) { ADD_FAILURE(); });
    const std::string answer = ask(server.port(), "GARBAGE\r\n\r\n");
    EXPECT_THAT(answer,
                StartsWith("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(answer, HasSubstr(R"({"error":{"message":"the request is not valid HTTP)"));
    EXPECT_THAT(
        answer,
        HasSubstr(R"("type":"invalid_request_error","param":null,"code":"invalid_request"}})"));
    EXPECT_THAT(ask(server.port(),
                    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                StartsWith("HTTP/1.1 400 "));
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(HttpServerTest, TheErrorBodyCanBeTheCallers) {
    HttpServerOptions options;
    options.error_body = [](int status, std::string_view message) {
        return HttpResponse::text(status, "mine: " + std::string(message));
    };
    TestServer server(options, echo);
    EXPECT_THAT(ask(server.port(), "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n"),
                HasSubstr("mine: the request target is malformed"));
}

TEST(HttpServerTest, ABodyTooLargeIsRefusedBeforeItIsSentAndTheClientSeesWhy) {
    HttpServerOptions options;
    options.body_bytes = 1000;
    TestServer server(options, echo);
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n";
    EXPECT_THAT(ask(server.port(), head + "Expect: 100-continue\r\n\r\n"),
                StartsWith("HTTP/1.1 413 "));
    // Sends it all the same before it looks.
    const std::string answer = ask(server.port(), head + "\r\n" + std::string(4'000'000, 'x'));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
    EXPECT_THAT(answer, HasSubstr(R"("code":"payload_too_large")"));
}

TEST(HttpServerTest, AHeaderTooLargeIsRefused) {
    TestServer server(echo);
    EXPECT_THAT(ask(server.port(), "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(100'000, 'x')),
                StartsWith("HTTP/1.1 431 "));
}

TEST(HttpServerTest, AHeaderThatNeverEndsIsRefusedInTime) {
    HttpServerOptions options;
    options.header_time = milliseconds(50);
    TestServer server(options, echo);
    EXPECT_THAT(ask(server.port(), "GET / HTTP/1.1\r\nHost: h\r\n"), StartsWith("HTTP/1.1 408 "));
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(HttpServerTest, ASecondHeaderThatNeverEndsIsRefusedToo) {
    HttpServerOptions options;
    options.header_time = milliseconds(50);
    TestServer server(options, echo);
    EXPECT_THAT(ask(server.port(), std::string(kGet) + "GET"), HasSubstr("HTTP/1.1 408 "));
}

TEST(HttpServerTest, ABodyThatNeverEndsIsRefusedInTime) {
    HttpServerOptions options;
    options.body_time = milliseconds(50);
    TestServer server(options, echo);
    EXPECT_THAT(ask(server.port(), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhal"),
                StartsWith("HTTP/1.1 408 "));
}

TEST(HttpServerTest, AnIdleConnectionIsClosedWithoutAWord) {
    HttpServerOptions options;
    options.idle_time = milliseconds(50);
    TestServer server(options, echo);
    EXPECT_EQ(ask(server.port(), ""), "");
    RawSocket socket(server.port());
    socket.send(kGet);
    EXPECT_THAT(socket.read_answer(), HasSubstr("200 OK"));
    EXPECT_EQ(socket.read_all(), "");
    EXPECT_FALSE(socket.was_reset());
}

TEST(HttpServerTest, AnExchangeDroppedWithoutAnAnswerIsA500) {
    TestServer server([](const std::shared_ptr<HttpExchange>&) {});
    RawSocket socket(server.port());
    for (int i = 0; i < 2; ++i) {  // The connection lives on.
        socket.send(kGet);
        EXPECT_THAT(socket.read_answer(), StartsWith("HTTP/1.1 500 "));
    }
}

TEST(HttpServerTest, AnExchangeMayBeDroppedOnAnotherThread) {
    std::thread other;
    TestServer server([&](std::shared_ptr<HttpExchange> exchange) {
        other = std::thread([exchange = std::move(exchange)]() mutable { exchange.reset(); });
    });
    RawSocket socket(server.port());
    socket.send(kGet);
    EXPECT_THAT(socket.read_answer(), StartsWith("HTTP/1.1 500 "));
    server.thread().call([&] { other.join(); });
}

TEST(HttpServerTest, AHandlerThatThrowsHarmsItsOwnRequestOnly) {
    std::shared_ptr<HttpExchange> kept;
    TestServer server([&](const std::shared_ptr<HttpExchange>& exchange) {
        if (exchange->request().path != "/bad") return echo(exchange);
        kept = exchange;
        throw std::runtime_error("a test's exception");
    });
    RawSocket other(server.port());
    EXPECT_THAT(ask(server.port(), "GET /bad HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
    other.send(kGet);
    EXPECT_THAT(other.read_answer(), StartsWith("HTTP/1.1 200 "));
    server.thread().call([&] { kept.reset(); });
}

TEST(HttpServerTest, AnswersGivenTwiceCountOnce) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond(HttpResponse::text(200, "first"));
        exchange->respond(HttpResponse::text(200, "second"));
        exchange->begin_stream(200, {});
        exchange->write("third");
        exchange->end_stream();
        exchange->abort();
    });
    const std::string answer =
        ask(server.port(), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("\r\n\r\nfirst")) << answer;
}

TEST(HttpServerTest, BeyondTheLimitConnectionsWaitUntilOthersEnd) {
    HttpServerOptions options;
    options.connections = 2;
    TestServer server(options, echo);
    RawSocket first(server.port());
    RawSocket second(server.port());
    ASSERT_TRUE(server.wait_for_connections(2));
    RawSocket third(server.port());
    third.send(kGet);
    second.send(kGet);
    EXPECT_THAT(second.read_answer(), HasSubstr("200 OK"));
    EXPECT_EQ(server.connections(), 2U);
    pollfd ready{.fd = third.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&ready, 1, 0), 0);
    first.close();
    EXPECT_THAT(third.read_answer(), HasSubstr("200 OK"));
}

TEST(HttpServerTest, RunningOutOfFilesIsSurvived) {
    TestServer server(echo);
    RawSocket before(0);
    RawSocket client(0);
    rlimit old_limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
    const rlimit none_left{.rlim_cur = static_cast<rlim_t>(client.fd()) + 1,
                           .rlim_max = old_limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    client.connect_to(server.port());
    EXPECT_TRUE(client.send(kGet));
    pollfd ready{.fd = client.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&ready, 1, 20), 0);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
    EXPECT_THAT(client.read_answer(), HasSubstr("200 OK"));
}

TEST(HttpServerTest, StopAcceptingClosesIdleConnectionsAndLetsTheRestFinish) {
    std::shared_ptr<HttpExchange> running;
    Signal started;
    TestServer server([&](std::shared_ptr<HttpExchange> exchange) {
        if (exchange->request().path == "/quick") return echo(exchange);
        running = std::move(exchange);
        started.set();
    });
    RawSocket idle(server.port());
    idle.send("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(idle.read_answer(), HasSubstr("200 OK"));
    RawSocket busy(server.port());
    busy.send(kGet);
    ASSERT_TRUE(started.wait());
    server.thread().call([&] { server.server().stop_accepting(); });
    EXPECT_EQ(idle.read_all(), "");
    server.thread().call(
        [&] { std::exchange(running, nullptr)->respond(HttpResponse::text(200, "late")); });
    const std::string answer = busy.read_all();
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(answer.ends_with("late"));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_NE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
}

TEST(HttpServerTest, ATakenAddressIsNamed) {
    TestServer server(echo);
    EventLoop loop;
    HttpServerOptions options;
    options.port = server.port();
    const auto second = HttpServer::listen(loop, options, echo);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code(), ErrorCode::kIo);
    EXPECT_EQ(second.error().message(),
              "127.0.0.1:" + std::to_string(server.port()) + " is already in use");
}

TEST(HttpServerTest, AnAddressThatIsNoneIsRefused) {
    EventLoop loop;
    HttpServerOptions options;
    options.address = "example.com";
    const auto server = HttpServer::listen(loop, options, echo);
    ASSERT_FALSE(server.has_value());
    EXPECT_EQ(server.error().code(), ErrorCode::kInvalid);
    EXPECT_THAT(server.error().message(), HasSubstr("example.com"));
}

TEST(HttpServerTest, ARestartTakesTheSamePortAtOnce) {
    HttpServerOptions options;
    {
        TestServer server(echo);
        options.port = server.port();
        EXPECT_THAT(ask(server.port(), "GET / HTTP/1.0\r\n\r\n"), HasSubstr("200 OK"));
    }
    TestServer again(options, echo);
    EXPECT_EQ(again.port(), options.port);
}

TEST(HttpServerTest, AListeningSocketCanBeHandedOver) {
    RawListener listener;
    HttpServerOptions options;
    options.listen_fd = listener.release();
    TestServer server(options, echo);
    EXPECT_EQ(server.port(), listener.port());
    EXPECT_THAT(ask(server.port(), "GET / HTTP/1.0\r\n\r\n"), HasSubstr("200 OK"));
}

TEST(HttpServerTest, AHandedOverFileThatIsNoListenerIsRefused) {
    EventLoop loop;
    RawSocket unconnected(0);
    HttpServerOptions options;
    options.listen_fd = unconnected.fd();
    EXPECT_EQ(HttpServer::listen(loop, options, echo).error().code(), ErrorCode::kInvalid);
    options.listen_fd = 100'000;
    EXPECT_EQ(HttpServer::listen(loop, options, echo).error().code(), ErrorCode::kIo);
}

TEST(HttpServerTest, Version6AddressesWork) {
    const int probe = socket(AF_INET6, SOCK_STREAM, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const bool available =
        probe >= 0 && bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(probe);
    if (!available) GTEST_SKIP() << "this machine has no ::1";
    HttpServerOptions options;
    options.address = "[::1]";
    TestServer server(options, [](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond(HttpResponse::text(200, exchange->request().peer));
    });
    TestClient client;
    const Answer answer =
        client.fetch({.url = "http://[::1]:" + std::to_string(server.port()) + "/"});
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.body, StartsWith("[::1]:"));
}

// The client sees it all although it reads late; the server keeps nothing of it.
TEST(HttpServerTest, ALargeAnswerArrivesWhole) {
    const std::string body(8 * 1024 * 1024, 'x');
    TestServer server([&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond(HttpResponse::text(200, body));
    });
    RawSocket socket(server.port(), 4096);
    socket.send(kGet);
    const std::string answer = socket.read_answer();
    EXPECT_TRUE(answer.ends_with("xxx"));
    EXPECT_GT(answer.size(), body.size());
    socket.send(kGet);
    EXPECT_GT(socket.read_answer().size(), body.size());
}

TEST(HttpServerTest, AClientThatHalfClosesStillGetsTheAnswerThatIsComplete) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond(HttpResponse::text(200, std::string(4 * 1024 * 1024, 'x')));
    });
    RawSocket socket(server.port(), 4096);
    socket.send(kGet);
    EXPECT_THAT(socket.read_until("\r\n\r\n"), HasSubstr("200 OK"));
    socket.half_close();
    EXPECT_EQ(socket.read_all().size(), 4U * 1024 * 1024);
}

}  // namespace
}  // namespace sluice::net
