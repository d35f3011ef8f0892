#include "net/http_client.h"

#include <netinet/tcp.h>

#include <stdexcept>

#include "net/http_server.h"
#include "tests/net/support.h"

namespace sluice::net {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::milliseconds;
using testing::RawListener;
using testing::RawSocket;
using testing::ScriptedServer;
using testing::Signal;
using testing::TestClient;
using testing::TestServer;

void echo(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    exchange->respond(HttpResponse::text(
        200, request.method + " " + request.path + "?" + request.query + " " + request.body));
}

/// What a server that sends exactly `wire` and closes makes of a GET.
Answer answer_to(std::string wire) {
    ScriptedServer server({std::move(wire)});
    TestClient client;
    return client.fetch({.url = server.url()});
}

ErrorCode error_of(std::string wire) {
    const Answer answer = answer_to(std::move(wire));
    EXPECT_TRUE(answer.error.has_value());
    return answer.error ? answer.error->code() : ErrorCode::kInternal;
}

TEST(HttpClientTest, ARequestArrivesAsItWasAsked) {
    TestServer server(echo);
    TestClient client;
    const Answer answer = client.fetch(
        {.method = "POST", .url = server.url("/v1/x?y=1"), .body = std::string(300'000, 'b')});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.find("content-type"), "text/plain; charset=utf-8");
    EXPECT_EQ(answer.body, "POST /v1/x?y=1 " + std::string(300'000, 'b'));
}

TEST(HttpClientTest, ASharedBodyIsSentFromWhereItIs) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond(HttpResponse::text(200, exchange->request().body));
    });
    TestClient client;
    const auto owner = std::make_shared<const std::string>(2'000'000, 's');
    ClientRequest request{.method = "POST", .url = server.url(), .body = "{"};
    request.shared_body.push_back({.text = *owner, .owner = owner});
    request.shared_body.push_back(SharedText::own("}"));
    EXPECT_EQ(client.fetch(std::move(request)).body, "{" + *owner + "}");
    EXPECT_EQ(owner.use_count(), 1) << "nobody holds it any more";
}

/// This process's socket whose two ends are these ports.
int find_socket(std::uint16_t local, std::uint16_t remote) {
    for (int fd = 0; fd < 1024; ++fd) {
        sockaddr_in here{};
        sockaddr_in there{};
        socklen_t size = sizeof here;
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) != 0) continue;
        size = sizeof there;
        if (getpeername(fd, reinterpret_cast<sockaddr*>(&there), &size) != 0) continue;
        if (ntohs(here.sin_port) == local && ntohs(there.sin_port) == remote) return fd;
    }
    return -1;
}

TEST(HttpClientTest, NeitherSideHoldsSmallWritesBack) {
    Signal arrived;
    std::shared_ptr<HttpExchange> kept;
    TestServer server([&](std::shared_ptr<HttpExchange> exchange) {
        kept = std::move(exchange);
        arrived.set();
    });
    TestClient client;
    const auto call = client.start({.url = server.url()});
    ASSERT_TRUE(arrived.wait());
    const std::string peer = server.thread().call([&] { return kept->request().peer; });
    const auto port = static_cast<std::uint16_t>(std::stoi(peer.substr(peer.find(':') + 1)));
    for (const int fd : {find_socket(port, server.port()), find_socket(server.port(), port)}) {
        int on = 0;
        socklen_t size = sizeof on;
        ASSERT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
        EXPECT_EQ(on, 1);
    }
    server.thread().call([&] { kept->respond(HttpResponse::text(200, "")); });
    EXPECT_EQ(call->wait().status, 200);
}

TEST(HttpClientTest, ItsHeaderIsComplete) {
    ScriptedServer server({"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"});
    TestClient client;
    client.fetch({.method = "POST",
                  .url = server.url("/p"),
                  .headers = {{"X-Id", "7"}, {"Content-Length", "99"}, {"X-Bad", "a\r\nb: c"}}});
    client.fetch({.url = server.url("/g")});
    server.join();
    const std::string host = server.url("").substr(7);
    EXPECT_EQ(server.requests()[0],
              "POST /p HTTP/1.1\r\nHost: " + host +
                  "\r\nX-Id: 7\r\nX-Bad: a  b: c\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(server.requests()[1], "GET /g HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
}

TEST(HttpClientTest, CallsOneAfterTheOtherShareAConnection) {
    TestServer server(echo);
    TestClient client;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(client.fetch({.url = server.url()}).status, 200);
    EXPECT_EQ(server.connections(), 1U);
}

TEST(HttpClientTest, EveryKindOfBodyIsReadToItsEnd) {
    EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").body, "ab");
    EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "1;x=y\r\na\r\n1\r\nb\r\n0\r\nX-Trailer: 1\r\n\r\n")
                  .body,
              "ab");
    EXPECT_EQ(answer_to("HTTP/1.0 200 OK\r\n\r\nab").body, "ab");
    EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").body, "");
    const Answer continued = answer_to(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n"
        "HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nz");
    EXPECT_EQ(continued.status, 201);
    EXPECT_EQ(continued.body, "z");
}

TEST(HttpClientTest, HeadHasNoBody) {
    TestServer server(echo);
    TestClient client;
    for (int i = 0; i < 2; ++i) {
        const Answer answer = client.fetch({.method = "HEAD", .url = server.url()});
        EXPECT_EQ(answer.status, 200);
        EXPECT_EQ(answer.body, "");
        EXPECT_FALSE(answer.error.has_value());
    }
    EXPECT_EQ(server.connections(), 1U);
}

TEST(HttpClientTest, ABodyThatIsCutIsAnError) {
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), ErrorCode::kUnavailable);
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
              ErrorCode::kUnavailable);
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-"), ErrorCode::kUnavailable);
    EXPECT_EQ(error_of(""), ErrorCode::kUnavailable);
}

TEST(HttpClientTest, WhatIsNotHttpIsAnError) {
    EXPECT_EQ(error_of("SSH-2.0-OpenSSH_9.2\r\n"), ErrorCode::kInvalid);
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
              ErrorCode::kInvalid);
    EXPECT_EQ(
        error_of("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ErrorCode::kInvalid);
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab"),
              ErrorCode::kInvalid);
    EXPECT_EQ(error_of("HTTP/1.1 101 Switching Protocols\r\n\r\n"), ErrorCode::kInvalid);
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')), ErrorCode::kInvalid);
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab"),
              ErrorCode::kInvalid);
    EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                       std::string(100'000, 'x')),
              ErrorCode::kInvalid);
}

TEST(HttpClientTest, ABadUrlIsAnErrorThatComesLater) {
    TestClient client;
    EXPECT_EQ(client.fetch({.url = "nonsense"}).error->code(), ErrorCode::kInvalid);
    EXPECT_EQ(client.fetch({.url = "ftp://h/"}).error->code(), ErrorCode::kUnsupported);
    EXPECT_EQ(client.fetch({.method = "G T", .url = "http://127.0.0.1:1/"}).error->code(),
              ErrorCode::kInvalid);
}

TEST(HttpClientTest, ARefusedConnectionIsUnavailableAndNamed) {
    std::string url;
    {
        const RawListener listener;
        url = listener.url();
    }
    TestClient client;
    const Answer answer = client.fetch({.url = url});
    ASSERT_TRUE(answer.error.has_value());
    EXPECT_EQ(answer.error->code(), ErrorCode::kUnavailable);
    EXPECT_THAT(answer.error->message(), HasSubstr("127.0.0.1:"));
}

TEST(HttpClientTest, LocalhostIsFoundWithoutAsking) {
    TestServer server(echo);
    TestClient client;
    EXPECT_EQ(client.fetch({.url = "http://localhost:" + std::to_string(server.port())}).status,
              200);
}

TEST(HttpClientTest, AHostThatIsNotThereIsUnavailableOrTakesTooLong) {
    TestClient client;
    const Answer answer =
        client.fetch({.url = "http://no-such-host.invalid/", .connect_time = milliseconds(500)});
    ASSERT_TRUE(answer.error.has_value());
    EXPECT_TRUE(answer.error->code() == ErrorCode::kUnavailable ||
                answer.error->code() == ErrorCode::kTimeout);
}

TEST(HttpClientTest, AnAnswerThatDoesNotComeIsATimeout) {
    const RawListener listener;  // The kernel accepts, nobody reads.
    TestClient client;
    const Answer answer = client.fetch({.url = listener.url(), .head_time = milliseconds(30)});
    ASSERT_TRUE(answer.error.has_value());
    EXPECT_EQ(answer.error->code(), ErrorCode::kTimeout);
    EXPECT_THAT(answer.error->message(), HasSubstr("30 ms"));
}

TEST(HttpClientTest, ABodyThatStandsStillIsATimeoutAndItsConnectionIsClosed) {
    std::shared_ptr<HttpExchange> kept;
    Signal gone;
    TestServer server([&](std::shared_ptr<HttpExchange> exchange) {
        exchange->begin_stream(200, {});
        exchange->write("first");
        exchange->on_client_gone([&] { gone.set(); });
        kept = std::move(exchange);
    });
    TestClient client;
    const Answer answer = client.fetch({.url = server.url(), .stall_time = milliseconds(50)});
    EXPECT_EQ(answer.body, "first");
    ASSERT_TRUE(answer.error.has_value());
    EXPECT_EQ(answer.error->code(), ErrorCode::kTimeout);
    EXPECT_TRUE(gone.wait());
    server.thread().call([&] { kept.reset(); });
}

TEST(HttpClientTest, DataIsDeliveredAsItComes) {
    std::shared_ptr<HttpExchange> kept;
    TestServer server([&](std::shared_ptr<HttpExchange> exchange) {
        exchange->begin_stream(200, {});
        kept = std::move(exchange);
    });
    TestClient client;
    const auto call = client.start({.url = server.url()});
    ASSERT_TRUE(call->wait_for_head());
    for (std::size_t i = 1; i <= 5; ++i) {
        server.thread().call([&] { kept->write("x"); });
        ASSERT_TRUE(call->wait_for_body(i));
    }
    server.thread().call([&] { std::exchange(kept, nullptr)->end_stream(); });
    EXPECT_EQ(call->wait().body, "xxxxx");
}

TEST(HttpClientTest, ACancelledCallClosesItsConnectionAndSaysNothing) {
    std::shared_ptr<HttpExchange> kept;
    Signal arrived;
    Signal gone;
    TestServer server([&](std::shared_ptr<HttpExchange> exchange) {
        exchange->on_client_gone([&] { gone.set(); });
        kept = std::move(exchange);
        arrived.set();
    });
    TestClient client;
    auto call = client.start({.url = server.url()});
    ASSERT_TRUE(arrived.wait());
    call.reset();
    EXPECT_TRUE(gone.wait());
    server.thread().call([&] { kept.reset(); });
}

// Every event may destroy the handle.
TEST(HttpClientTest, ACallMayEndItselfFromAnyEvent) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        for (int i = 0; i < 3; ++i) exchange->write("data");
        exchange->end_stream();
    });
    for (int event = 0; event < 3; ++event) {
        TestClient client;
        std::unique_ptr<HttpCall> call;
        Signal ended;
        const auto end_at = [&](int now) {
            EXPECT_FALSE(ended.is_set());
            if (now != event) return;
            call.reset();
            ended.set();
        };
        client.thread().call([&] {
            call = client.client().start({.url = server.url()},
                                         {.on_head = [=](int, const HttpHeaders&) { end_at(0); },
                                          .on_data = [=](std::string_view) { end_at(1); },
                                          .on_done = [=] { end_at(2); },
                                          .on_error = [](const Error&) { ADD_FAILURE(); }});
        });
        EXPECT_TRUE(ended.wait());
        client.thread().call([] {});
    }
}

TEST(HttpClientTest, TheNextCallFromTheLastEventReusesTheConnection) {
    TestServer server(echo);
    TestClient client;
    std::unique_ptr<HttpCall> first;
    std::unique_ptr<HttpCall> second;
    Signal done;
    client.thread().call([&] {
        first =
            client.client().start({.url = server.url()}, {.on_done = [&] {
                                      second = client.client().start(
                                          {.url = server.url()}, {.on_done = [&] { done.set(); }});
                                  }});
    });
    EXPECT_TRUE(done.wait());
    EXPECT_EQ(server.connections(), 1U);
    client.thread().call([&] {
        first.reset();
        second.reset();
    });
}

TEST(HttpClientTest, WhoHasHeardEnoughLeavesTheConnectionForTheNextCall) {
    std::vector<std::string> peers;
    TestServer server([&](const std::shared_ptr<HttpExchange>& exchange) {
        peers.push_back(exchange->request().peer);
        exchange->begin_stream(200, {});
        exchange->write("all that matters");
        exchange->end_stream();
    });
    TestClient client;
    for (int i = 0; i < 2; ++i) {
        std::unique_ptr<HttpCall> call;
        Signal heard;
        client.thread().call([&] {
            call = client.client().start(
                {.url = server.url()},
                {.on_head = {},
                 .on_data =
                     [&](std::string_view) {
                         call->finish_unheard();
                         call.reset();
                         heard.set();
                     },
                 .on_done = [] { ADD_FAILURE(); },
                 .on_error = [](const Error& error) { ADD_FAILURE() << error.to_string(); }});
        });
        ASSERT_TRUE(heard.wait());
        client.thread().call([] {});  // The read that brought it is over.
    }
    server.thread().call([&] {
        ASSERT_EQ(peers.size(), 2U);
        EXPECT_EQ(peers[0], peers[1]);
    });
}

TEST(HttpClientTest, AnEventThatThrowsEndsItsOwnCallWithAnError) {
    TestServer server(echo);
    TestClient client;
    std::unique_ptr<HttpCall> call;
    Signal failed;
    client.thread().call([&] {
        call = client.client().start(
            {.url = server.url()},
            {.on_head = [](int,
                           const HttpHeaders&) { throw std::runtime_error("a test's exception"); },
             .on_done = [] { ADD_FAILURE(); },
             .on_error =
                 [&](const Error& error) {
                     EXPECT_EQ(error.code(), ErrorCode::kInternal);
                     failed.set();
                 }});
    });
    EXPECT_TRUE(failed.wait());
    client.thread().call([&] { call.reset(); });
    EXPECT_EQ(client.fetch({.url = server.url()}).status, 200);
}

/// Answers one request on each of two connections; the first dies when the second request comes.
class ForgetfulServer {
public:
    enum class Calls : std::uint8_t { kOneConnection, kTwoConnections };
    explicit ForgetfulServer(Calls calls = Calls::kTwoConnections)
        : thread_([this, calls] { serve(calls); }) {}
    ~ForgetfulServer() { thread_.join(); }
    [[nodiscard]] std::string url() const { return listener_.url(); }

private:
    static std::string read_head(int fd) {
        std::string seen;
        char byte = 0;
        while (seen.find("\r\n\r\n") == std::string::npos && recv(fd, &byte, 1, 0) == 1)
            seen += byte;
        return seen;
    }
    static void answer(int fd) {
        constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        static_cast<void>(::send(fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL));
    }
    void serve(Calls calls) {
        const int first = listener_.accept();
        read_head(first);
        answer(first);
        read_head(first);
        ::close(first);
        if (calls == Calls::kOneConnection) return;
        const int second = listener_.accept();
        read_head(second);
        answer(second);
        ::close(second);
    }

    RawListener listener_;
    std::thread thread_;
};

TEST(HttpClientTest, AGetOnAConnectionThatHadDiedIsSentOnceMore) {
    ForgetfulServer server;
    TestClient client;
    EXPECT_EQ(client.fetch({.url = server.url()}).body, "ok");
    EXPECT_EQ(client.fetch({.url = server.url()}).body, "ok");
}

TEST(HttpClientTest, APostOnAConnectionThatHadDiedIsNot) {
    ForgetfulServer server(ForgetfulServer::Calls::kOneConnection);
    TestClient client;
    EXPECT_EQ(client.fetch({.url = server.url()}).body, "ok");
    const Answer answer = client.fetch({.method = "POST", .url = server.url(), .body = "x"});
    ASSERT_TRUE(answer.error.has_value());
    EXPECT_EQ(answer.error->code(), ErrorCode::kUnavailable);
}

TEST(HttpClientTest, APostThatDoesNoHarmTwiceIs) {
    ForgetfulServer server;
    TestClient client;
    EXPECT_EQ(client.fetch({.url = server.url()}).body, "ok");
    EXPECT_EQ(
        client.fetch({.method = "POST", .url = server.url(), .body = "x", .repeatable = true}).body,
        "ok");
}

TEST(HttpClientTest, AConnectionTheServerClosedWhileIdleIsNotUsedAgain) {
    HttpServerOptions options;
    options.idle_time = milliseconds(30);
    TestServer server(options, echo);
    TestClient client;
    for (int i = 0; i < 3; ++i) {
        const Answer answer = client.fetch({.method = "POST", .url = server.url()});
        EXPECT_EQ(answer.status, 200);
        ASSERT_TRUE(server.wait_for_connections(0));
        client.thread().call([] {});
        client.thread().call([] {});
    }
}

TEST(HttpClientTest, IdleConnectionsAreBoundedInNumber) {
    std::vector<std::shared_ptr<HttpExchange>> waiting;
    TestServer server(
        [&](std::shared_ptr<HttpExchange> exchange) { waiting.push_back(std::move(exchange)); });
    TestClient client({.idle_connections_per_host = 2});
    std::vector<std::unique_ptr<testing::PendingCall>> calls;
    for (int i = 0; i < 5; ++i) calls.push_back(client.start({.url = server.url()}));
    while (server.thread().call([&] { return waiting.size(); }) < 5) std::this_thread::yield();
    server.thread().call([&] {
        for (const auto& exchange : waiting) exchange->respond(HttpResponse::text(200, "x"));
        waiting.clear();
    });
    for (const auto& call : calls) EXPECT_EQ(call->wait().status, 200);
    EXPECT_TRUE(server.wait_for_connections(2));
}

TEST(HttpClientTest, IdleConnectionsAreBoundedInAge) {
    TestServer server(echo);
    TestClient client({.idle_time = milliseconds(20)});
    EXPECT_EQ(client.fetch({.url = server.url()}).status, 200);
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(HttpClientTest, DestroyingTheClientClosesWhatIsIdle) {
    TestServer server(echo);
    TestClient client;
    EXPECT_EQ(client.fetch({.url = server.url()}).status, 200);
    EXPECT_EQ(server.connections(), 1U);
    client.close();
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(HttpClientTest, ARefusalOfABodyIsSeenThoughTheBodyIsNotOut) {
    HttpServerOptions options;
    options.body_bytes = 1000;
    TestServer server(options, echo);
    TestClient client;
    const Answer answer =
        client.fetch({.method = "POST", .url = server.url(), .body = std::string(30'000'000, 'x')});
    EXPECT_EQ(answer.status, 413);
    EXPECT_THAT(answer.body, HasSubstr("payload_too_large"));
}

}  // namespace
}  // namespace sluice::net
