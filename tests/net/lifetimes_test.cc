// Loop, server, client, calls and exchanges may end in any order.

#include "net/http_client.h"
#include "net/http_server.h"
#include "tests/net/support.h"

namespace sluice::net {
namespace {

using testing::LoopThread;
using testing::RawSocket;
using testing::Signal;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// One of everything, in the middle of a request.
struct World {
    std::unique_ptr<LoopThread> thread = std::make_unique<LoopThread>();
    std::unique_ptr<HttpServer> server;
    std::unique_ptr<HttpClient> client;
    std::unique_ptr<HttpCall> call;
    std::shared_ptr<HttpExchange> exchange;
    Signal streaming;

    World() {
        thread->call([&] {
            EventLoop& loop = thread->loop();
            server = *HttpServer::listen(loop, {}, [&](std::shared_ptr<HttpExchange> incoming) {
                incoming->begin_stream(200, {});
                incoming->write("x");
                incoming->on_client_gone([kept = incoming] {});
                exchange = std::move(incoming);
            });
            client = std::make_unique<HttpClient>(loop);
            call = client->start({.url = "http://127.0.0.1:" + std::to_string(server->port())},
                                 {.on_data = [&](std::string_view) { streaming.set(); },
                                  .on_error = [](const Error&) {}});
        });
        EXPECT_TRUE(streaming.wait());
    }

    ~World() {
        if (thread) thread->stop();
    }

    void use_everything() const {
        if (exchange) {
            exchange->write("y");
            exchange->on_client_gone([] {});
            EXPECT_EQ(exchange->backlog_bytes(), 0U);
            exchange->end_stream();
            exchange->abort();
        }
        if (server) server->stop_accepting();
        if (client) {
            const auto late = client->start({.url = "http://127.0.0.1:1/"},
                                            {.on_error = [](const Error&) { ADD_FAILURE(); }});
        }
    }
};

TEST(LifetimesTest, EverythingMayOutliveTheLoop) {
    World world;
    world.thread.reset();
    world.use_everything();
}

TEST(LifetimesTest, EverythingMayEndAfterTheLoopInAnyOrder) {
    {
        World world;
        world.thread.reset();
        world.exchange.reset();
        world.server.reset();
        world.client.reset();
        world.call.reset();
    }
    {
        World world;
        world.thread.reset();
        world.call.reset();
        world.client.reset();
        world.server.reset();
        world.use_everything();
    }
}

TEST(LifetimesTest, EverythingMayEndBetweenTheThreadAndTheLoop) {
    World world;
    world.thread->stop();
    world.server.reset();
    world.use_everything();
    world.exchange.reset();
    world.client.reset();
    world.call.reset();
}

TEST(LifetimesTest, AnExchangeOutlivesItsServer) {
    World world;
    world.thread->call([&] {
        world.server.reset();
        world.use_everything();
        world.exchange.reset();
        world.call.reset();
    });
}

TEST(LifetimesTest, ACallOutlivesItsClient) {
    World world;
    Signal done;
    world.thread->call([&] {
        world.call = world.client->start(
            {.url = "http://127.0.0.1:" + std::to_string(world.server->port())},
            {.on_head = [&](int, const HttpHeaders&) { world.exchange->end_stream(); },
             .on_done = [&] { done.set(); }});
        world.client.reset();
    });
    EXPECT_TRUE(done.wait());
    world.thread->call([&] { world.call.reset(); });
}

TEST(LifetimesTest, AServerMayEndWithinItsHandler) {
    LoopThread thread;
    std::unique_ptr<HttpServer> server;
    const std::uint16_t port = thread.call([&] {
        server =
            *HttpServer::listen(thread.loop(), {}, [&](std::shared_ptr<HttpExchange> exchange) {
                server.reset();
                exchange->respond(HttpResponse::text(200, "too late"));
            });
        return server->port();
    });
    RawSocket socket(port);
    socket.send(kGet);
    EXPECT_EQ(socket.read_all(), "");
    thread.stop();
    EXPECT_EQ(server, nullptr);
}

TEST(LifetimesTest, WorkThatOwnsAnExchangeMayBeDroppedWithTheLoop) {
    World world;
    world.thread->stop();
    world.thread->loop().post([exchange = std::move(world.exchange)] { ADD_FAILURE(); });
}

}  // namespace
}  // namespace sluice::net
