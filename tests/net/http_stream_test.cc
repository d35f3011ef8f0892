#include <set>

#include "net/http_server.h"
#include "net/sse.h"
#include "tests/net/support.h"

namespace sluice::net {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::milliseconds;
using ::testing::Not;
using testing::PendingCall;
using testing::RawSocket;
using testing::Signal;
using ::testing::StartsWith;
using testing::TestClient;
using testing::TestServer;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// Keeps the exchanges it gets; they are to be used on the loop.
struct Keeper {
    std::vector<std::shared_ptr<HttpExchange>> exchanges;
    Signal arrived;
    Signal gone;

    HttpHandler handler() {
        return [this](std::shared_ptr<HttpExchange> exchange) {
            exchange->on_client_gone([this] { gone.set(); });
            exchanges.push_back(std::move(exchange));
            arrived.set();
        };
    }
};

TEST(HttpStreamTest, TheHeadDoesNotWaitForTheFirstEvent) {
    Keeper keeper;
    TestServer server(keeper.handler());
    RawSocket socket(server.port());
    socket.send(kGet);
    ASSERT_TRUE(keeper.arrived.wait());
    server.thread().call(
        [&] { keeper.exchanges[0]->begin_stream(200, {{"Content-Type", "text/event-stream"}}); });
    const std::string head = socket.read_until("\r\n\r\n");
    EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream\r\n"));
    EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
    server.thread().call([&] { keeper.exchanges[0]->write("data: 1\n\n"); });
    EXPECT_EQ(socket.read_until("data: 1\n\n\r\n"), "9\r\ndata: 1\n\n\r\n");
    server.thread().call([&] {
        keeper.exchanges[0]->write("");  // Not the end of the body.
        keeper.exchanges[0]->write("x");
        keeper.exchanges[0]->end_stream();
    });
    EXPECT_EQ(socket.read_until("0\r\n\r\n"), "1\r\nx\r\n0\r\n\r\n");
    EXPECT_FALSE(keeper.gone.is_set());
    socket.send(kGet);  // The connection lives on.
    server.thread().call([&] { keeper.exchanges.clear(); });
}

TEST(HttpStreamTest, WhatOneTurnWritesArrivesInOnePiece) {
    Keeper keeper;
    TestServer server(keeper.handler());
    RawSocket socket(server.port());
    socket.send(kGet);
    ASSERT_TRUE(keeper.arrived.wait());
    server.thread().call([&] { keeper.exchanges[0]->begin_stream(200, {}); });
    socket.read_until("\r\n\r\n");
    server.thread().call([&] {
        for (int i = 0; i < 10; ++i) keeper.exchanges[0]->write("event");
        EXPECT_EQ(keeper.exchanges[0]->backlog_bytes(), 100U);
    });
    char buffer[200];
    pollfd ready{.fd = socket.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&ready, 1, -1), 1);
    EXPECT_EQ(recv(socket.fd(), buffer, sizeof buffer, 0), 100);
    server.thread().call([&] {
        EXPECT_EQ(keeper.exchanges[0]->backlog_bytes(), 0U);
        keeper.exchanges.clear();
    });
}

TEST(HttpStreamTest, AnAbortedStreamIsVisiblyIncomplete) {
    for (const std::string_view version : {"1.0", "1.1"}) {
        Keeper keeper;
        TestServer server(keeper.handler());
        RawSocket socket(server.port());
        socket.send("GET / HTTP/" + std::string(version) + "\r\nHost: h\r\n\r\n");
        ASSERT_TRUE(keeper.arrived.wait());
        server.thread().call([&] {
            keeper.exchanges[0]->begin_stream(200, {});
            keeper.exchanges[0]->write("half");
        });
        EXPECT_THAT(socket.read_until("half"), StartsWith("HTTP/1.1 200"));
        server.thread().call([&] { keeper.exchanges[0]->abort(); });
        EXPECT_THAT(socket.read_all(), Not(HasSubstr("0\r\n\r\n")));
        EXPECT_EQ(socket.was_reset(), version == "1.0");
        EXPECT_FALSE(keeper.gone.is_set());
        server.thread().call([&] { keeper.exchanges.clear(); });
    }
}

TEST(HttpStreamTest, AStreamDroppedHalfWayIsCut) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        exchange->write("half");
    });
    TestClient client;
    const Answer answer = client.fetch({.url = server.url()});
    EXPECT_EQ(answer.body, "half");
    ASSERT_TRUE(answer.error.has_value());
    EXPECT_EQ(answer.error->code(), ErrorCode::kUnavailable);
}

TEST(HttpStreamTest, Http10GetsABodyThatTheCloseEnds) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        exchange->write("all");
        exchange->end_stream();
    });
    RawSocket socket(server.port());
    socket.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const std::string answer = socket.read_all();
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(answer, Not(HasSubstr("chunked")));
    EXPECT_TRUE(answer.ends_with("\r\n\r\nall"));
    EXPECT_FALSE(socket.was_reset());
}

TEST(HttpStreamTest, HeadOfAStreamHasNoBody) {
    TestServer server([](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        exchange->write("body");
        exchange->end_stream();
    });
    RawSocket socket(server.port());
    socket.send("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(socket.read_all().ends_with("\r\n\r\n"));
}

TEST(HttpStreamTest, AClientThatLeavesBeforeTheAnswerIsReported) {
    using Leave = std::function<void(RawSocket&)>;
    for (const Leave& leave : {Leave([](RawSocket& socket) { socket.close(); }),
                               Leave([](RawSocket& socket) { socket.reset_connection(); }),
                               Leave([](RawSocket& socket) { socket.half_close(); })}) {
        Keeper keeper;
        TestServer server(keeper.handler());
        RawSocket socket(server.port());
        socket.send(kGet);
        ASSERT_TRUE(keeper.arrived.wait());
        leave(socket);
        EXPECT_TRUE(keeper.gone.wait());
        EXPECT_TRUE(server.wait_for_connections(0));
        server.thread().call([&] {  // All of it does nothing now.
            keeper.exchanges[0]->respond(HttpResponse::text(200, "x"));
            keeper.exchanges[0]->begin_stream(200, {});
            keeper.exchanges[0]->write("x");
            keeper.exchanges[0]->end_stream();
            keeper.exchanges[0]->abort();
            EXPECT_EQ(keeper.exchanges[0]->backlog_bytes(), 0U);
            keeper.exchanges.clear();
        });
    }
}

TEST(HttpStreamTest, AClientThatLeavesAQuietStreamIsReported) {
    Keeper keeper;
    TestServer server(keeper.handler());
    RawSocket socket(server.port());
    socket.send(kGet);
    ASSERT_TRUE(keeper.arrived.wait());
    server.thread().call([&] { keeper.exchanges[0]->begin_stream(200, {}); });
    socket.read_until("\r\n\r\n");
    socket.close();
    EXPECT_TRUE(keeper.gone.wait());
    server.thread().call([&] { keeper.exchanges.clear(); });
}

TEST(HttpStreamTest, AClientThatLeavesWithARequestPipelinedIsReported) {
    Keeper keeper;
    TestServer server(keeper.handler());
    RawSocket socket(server.port());
    socket.send(std::string(kGet) + std::string(kGet));
    ASSERT_TRUE(keeper.arrived.wait());
    socket.close();
    EXPECT_TRUE(keeper.gone.wait());
    server.thread().call([&] {
        EXPECT_EQ(keeper.exchanges.size(), 1U);
        keeper.exchanges.clear();
    });
}

TEST(HttpStreamTest, WhoAsksLateLearnsItTooAndEveryoneWhoAskedDoes) {
    Keeper keeper;
    TestServer server(keeper.handler());
    RawSocket socket(server.port());
    socket.send(kGet);
    ASSERT_TRUE(keeper.arrived.wait());
    Signal also;
    Signal late;
    server.thread().call([&] { keeper.exchanges[0]->on_client_gone([&] { also.set(); }); });
    socket.close();
    ASSERT_TRUE(keeper.gone.wait());
    EXPECT_TRUE(also.wait());
    server.thread().call([&] {
        keeper.exchanges[0]->on_client_gone([&] { late.set(); });
        EXPECT_FALSE(late.is_set());  // Never from inside.
    });
    EXPECT_TRUE(late.wait());
    server.thread().call([&] { keeper.exchanges.clear(); });
}

TEST(HttpStreamTest, GoneIsNotCalledOnceTheAnswerIsHandedOver) {
    Keeper keeper;
    TestServer server(keeper.handler());
    RawSocket socket(server.port());
    socket.send(kGet);
    ASSERT_TRUE(keeper.arrived.wait());
    server.thread().call([&] {
        keeper.exchanges[0]->respond(HttpResponse::text(200, "x"));
        keeper.exchanges[0]->on_client_gone([] { ADD_FAILURE(); });
    });
    socket.read_answer();
    socket.close();
    EXPECT_TRUE(server.wait_for_connections(0));
    EXPECT_FALSE(keeper.gone.is_set());
    server.thread().call([&] { keeper.exchanges.clear(); });
}

TEST(HttpStreamTest, AReaderTooSlowForTheBacklogIsGone) {
    Keeper keeper;
    HttpServerOptions options;
    options.stream_backlog_bytes = 256 * 1024;
    TestServer server(options, keeper.handler());
    RawSocket socket(server.port(), 4096);
    socket.send(kGet);
    ASSERT_TRUE(keeper.arrived.wait());
    server.thread().call([&] { keeper.exchanges[0]->begin_stream(200, {}); });
    // Never reads. A bound on the rounds, for the kernel's own buffers are of unknown size.
    for (int i = 0; i < 10'000 && !keeper.gone.is_set(); ++i) {
        server.thread().call([&] {
            keeper.exchanges[0]->write(std::string(64 * 1024, 'x'));
            EXPECT_LE(keeper.exchanges[0]->backlog_bytes(), options.stream_backlog_bytes);
        });
    }
    EXPECT_TRUE(keeper.gone.wait());
    EXPECT_EQ(server.connections(), 0U);
    server.thread().call([&] { keeper.exchanges.clear(); });
}

TEST(HttpStreamTest, AReaderThatStopsIsGoneInTime) {
    Keeper keeper;
    HttpServerOptions options;
    options.write_stall = milliseconds(50);
    options.stream_backlog_bytes = 64 * 1024 * 1024;
    TestServer server(options, keeper.handler());
    RawSocket socket(server.port(), 4096);
    socket.send(kGet);
    ASSERT_TRUE(keeper.arrived.wait());
    server.thread().call([&] {
        keeper.exchanges[0]->begin_stream(200, {});
        keeper.exchanges[0]->write(std::string(32 * 1024 * 1024, 'x'));
        EXPECT_FALSE(keeper.gone.is_set());
    });
    EXPECT_TRUE(keeper.gone.wait());
    EXPECT_TRUE(server.wait_for_connections(0));
    server.thread().call([&] { keeper.exchanges.clear(); });
}

TEST(HttpStreamTest, AnAnswerNobodyReadsEndsItsConnectionInTime) {
    HttpServerOptions options;
    options.write_stall = milliseconds(50);
    TestServer server(options, [](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->respond(HttpResponse::text(200, std::string(32 * 1024 * 1024, 'x')));
    });
    RawSocket socket(server.port(), 4096);
    socket.send(kGet);
    ASSERT_TRUE(server.wait_for_connections(1));
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(HttpStreamTest, AReaderThatIsSlowButSteadyGetsEverything) {
    Keeper keeper;
    TestServer server(keeper.handler());
    RawSocket socket(server.port(), 4096);
    socket.send("GET / HTTP/1.0\r\n\r\n");
    ASSERT_TRUE(keeper.arrived.wait());
    server.thread().call([&] {
        keeper.exchanges[0]->begin_stream(200, {});
        for (int i = 0; i < 3000; ++i) keeper.exchanges[0]->write(std::string(1000, 'x'));
        keeper.exchanges[0]->end_stream();
    });
    socket.read_until("\r\n\r\n");
    EXPECT_EQ(socket.read_all().size(), 3'000'000U);
    server.thread().call([&] { keeper.exchanges.clear(); });
}

/// A stream of `events` events, one a turn.
void stream_events(EventLoop& loop, const std::shared_ptr<HttpExchange>& exchange, int events) {
    if (events == 0) return exchange->end_stream();
    exchange->write(sse_event(std::to_string(events)));
    loop.post([&loop, exchange, events] { stream_events(loop, exchange, events - 1); });
}

TEST(HttpStreamTest, TwoHundredStreamsAtOnceEachGetTheirOwn) {
    constexpr std::size_t kStreams = 200;
    Keeper keeper;
    TestServer server(keeper.handler());
    TestClient client;
    std::vector<std::unique_ptr<PendingCall>> calls;
    for (std::size_t i = 0; i < kStreams; ++i) {
        calls.push_back(client.start({.url = server.url("/" + std::to_string(i))}));
    }
    ASSERT_TRUE(server.wait_for_connections(kStreams));
    while (server.thread().call([&] { return keeper.exchanges.size(); }) < kStreams) {
        std::this_thread::yield();
    }
    server.thread().call([&] {
        for (const auto& exchange : keeper.exchanges) {
            exchange->begin_stream(200, {{"Content-Type", "text/event-stream"}});
            exchange->write(sse_event(exchange->request().path));
            stream_events(server.thread().loop(), exchange, 20);
        }
        keeper.exchanges.clear();
    });
    for (std::size_t i = 0; i < kStreams; ++i) {
        const Answer answer = calls[i]->wait();
        EXPECT_FALSE(answer.error.has_value());
        EXPECT_THAT(answer.body, StartsWith("data: /" + std::to_string(i) + "\n\n"));
        EXPECT_THAT(answer.body, HasSubstr("data: 20\n\ndata: 19\n\n"));
        EXPECT_TRUE(answer.body.ends_with("data: 1\n\n"));
    }
}

}  // namespace
}  // namespace sluice::net
