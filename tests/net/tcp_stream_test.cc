#include "net/tcp_stream.h"

#include <algorithm>
#include <atomic>

#include "net/tcp_client.h"
#include "net/tcp_server.h"
#include "tests/net/support.h"
#include "tests/support/certificates.h"

namespace sluice::net {
namespace {

using testing::kPatience;
using testing::LoopThread;
using testing::milliseconds;
using testing::RawListener;
using testing::RawSocket;

/// Sends back what it gets, and notes what happens.
class Echo : public TcpEvents {
public:
    explicit Echo(TcpStream& stream) : stream_(stream) {}
    void on_data(std::string_view data) override {
        if (data.starts_with("throw")) throw std::runtime_error("as asked");
        if (data.starts_with("quit")) return stream_.close_when_sent();
        stream_.write(data);
    }
    void on_end_of_input() override { stream_.close_when_sent(); }
    void on_broken(const Error& /*why*/) override {}

protected:
    TcpStream& stream_;
};

class Server {
public:
    explicit Server(TcpServer::Factory factory, TcpServerOptions options = {}) {
        thread_.call([&] {
            auto server = TcpServer::listen(thread_.loop(), std::move(options), std::move(factory));
            ASSERT_TRUE(server) << (server ? "" : server.error().to_string());
            server_ = *std::move(server);
        });
    }
    ~Server() {
        if (server_) close();
    }
    void close() {
        thread_.call([&] { server_.reset(); });
    }
    /// The loop ends first.
    void abandon() {
        thread_.stop();
        server_.reset();
    }

    [[nodiscard]] std::uint16_t port() {
        return thread_.call([&] { return server_->port(); });
    }
    [[nodiscard]] LoopThread& thread() { return thread_; }
    [[nodiscard]] TcpServer& server() { return *server_; }
    bool wait_for_connections(std::size_t count) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < end) {
            if (thread_.call([&] { return server_->connections(); }) == count) return true;
            std::this_thread::yield();
        }
        return false;
    }

private:
    LoopThread thread_;
    std::unique_ptr<TcpServer> server_;
};

template <class Events>
TcpServer::Factory make() {
    return [](TcpStream& stream, const std::string& /*peer*/) {
        return std::make_unique<Events>(stream);
    };
}

/// A client's end that can be waited for from outside the loop.
class Client final : public TcpEvents {
public:
    Client(LoopThread& thread, TcpTarget target) : thread_(thread) {
        thread_.call([&] { stream_ = connect_tcp(thread_.loop(), std::move(target), *this); });
    }
    ~Client() override { drop(); }

    void drop() {
        thread_.call([&] { stream_.reset(); });
    }
    void write(std::string_view data) {
        thread_.call([&] { stream_->write(data); });
    }
    std::string wait_for(std::size_t bytes) {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return received_.size() >= bytes; }));
        return received_;
    }
    std::optional<Error> wait_for_end() {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return ended_ || broken_; }));
        return broken_;
    }

    void on_data(std::string_view data) override {
        const std::lock_guard lock(mutex_);
        received_ += data;
        changed_.notify_all();
    }
    void on_end_of_input() override {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    }
    void on_broken(const Error& why) override {
        const std::lock_guard lock(mutex_);
        broken_ = why;
        changed_.notify_all();
    }

private:
    LoopThread& thread_;
    std::unique_ptr<TcpStream> stream_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string received_;
    std::optional<Error> broken_;
    bool ended_ = false;
};

TEST(TcpServerTest, BytesComeAndGo) {
    Server server(make<Echo>());
    RawSocket client(server.port());
    client.send("one\n");
    EXPECT_EQ(client.read_until("\n"), "one\n");
    client.send("two\n");
    EXPECT_EQ(client.read_until("\n"), "two\n");
}

TEST(TcpServerTest, WhoSendsNoMoreStillGetsAnswers) {
    Server server(make<Echo>());
    RawSocket client(server.port());
    const std::string data(1'000'000, 'x');
    std::thread sender([&] {
        client.send(data);
        client.half_close();
    });
    EXPECT_EQ(client.read_all(), data);
    sender.join();
    EXPECT_FALSE(client.was_reset());
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(TcpServerTest, WhatWasSentArrivesThoughTheClientSendsOn) {
    Server server(make<Echo>());
    RawSocket client(server.port());
    client.send("hello\n");
    EXPECT_EQ(client.read_until("\n"), "hello\n");
    client.send("quit");
    EXPECT_EQ(client.read_until("\n"), "");  // In order, not by a reset.
    EXPECT_FALSE(client.was_reset());
    client.send("more that nobody reads");
    client.close();
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(TcpServerTest, OneTooManyIsToldSo) {
    Server server(make<Echo>(), {.connections = 1, .refusal = "too many\n"});
    RawSocket first(server.port());
    ASSERT_TRUE(server.wait_for_connections(1));
    RawSocket second(server.port());
    EXPECT_EQ(second.read_all(), "too many\n");
    EXPECT_EQ(server.thread().call([&] { return server.server().refused(); }), 1U);
    first.close();
    ASSERT_TRUE(server.wait_for_connections(0));
    RawSocket third(server.port());
    third.send("hello\n");
    EXPECT_EQ(third.read_until("\n"), "hello\n");
}

TEST(TcpServerTest, WithoutARefusalOneTooManyWaits) {
    Server server(make<Echo>(), {.connections = 1});
    RawSocket first(server.port());
    ASSERT_TRUE(server.wait_for_connections(1));
    RawSocket second(server.port());
    second.send("hello\n");
    first.close();
    EXPECT_EQ(second.read_until("\n"), "hello\n");
}

TEST(TcpServerTest, AFailureEndsOneConnectionOnly) {
    Server server(make<Echo>());
    RawSocket good(server.port());
    RawSocket bad(server.port());
    bad.send("throw");
    bad.read_all();
    good.send("hello\n");
    EXPECT_EQ(good.read_until("\n"), "hello\n");
    EXPECT_TRUE(server.wait_for_connections(1));
}

/// Answers anything with more than a socket holds; notes what became of it.
class Flood final : public TcpEvents {
public:
    struct Fate {
        testing::Signal over;
        std::optional<Error> broken;
        bool sent_all = false;
        std::weak_ptr<const void> data;
    };
    static constexpr std::size_t kBytes = 64UL * 1024 * 1024;

    Flood(TcpStream& stream, Fate& fate) : stream_(stream), fate_(fate) {}
    void on_data(std::string_view /*data*/) override {
        SharedText text = SharedText::own(std::string(kBytes, 'f'));
        fate_.data = text.owner;
        stream_.share(std::move(text));
    }
    void on_sent_all() override {
        fate_.sent_all = true;
        fate_.over.set();
    }
    void on_end_of_input() override { stream_.close_when_sent(); }
    void on_broken(const Error& why) override {
        fate_.broken = why;
        fate_.over.set();
    }

private:
    TcpStream& stream_;
    Fate& fate_;
};

TcpServer::Factory flood(Flood::Fate& fate) {
    return [&fate](TcpStream& stream, const std::string& /*peer*/) {
        return std::make_unique<Flood>(stream, fate);
    };
}

TEST(TcpServerTest, WhoDoesNotReadIsCut) {
    Flood::Fate fate;
    Server server(flood(fate), {.write_stall = milliseconds(50)});
    RawSocket client(server.port());
    client.send("x");
    ASSERT_TRUE(fate.over.wait());
    ASSERT_TRUE(fate.broken);
    EXPECT_EQ(fate.broken->code(), ErrorCode::kTimeout);
    EXPECT_TRUE(server.wait_for_connections(0));
    EXPECT_TRUE(fate.data.expired());
}

TEST(TcpServerTest, WhoReadsGetsAll) {
    Flood::Fate fate;
    Server server(flood(fate));
    RawSocket client(server.port());
    client.send("x");
    client.half_close();
    EXPECT_EQ(client.read_all().size(), Flood::kBytes);
    EXPECT_TRUE(server.wait_for_connections(0));
    EXPECT_TRUE(fate.data.expired());
}

/// Answers each piece once what came before it has been sent.
class OneByOne final : public TcpEvents {
public:
    explicit OneByOne(TcpStream& stream) : stream_(stream) {}
    void on_data(std::string_view data) override {
        stream_.pause_input();
        stream_.write(data);
    }
    void on_sent_all() override { stream_.resume_input(); }
    void on_end_of_input() override { stream_.close_when_sent(); }
    void on_broken(const Error& /*why*/) override {}

private:
    TcpStream& stream_;
};

TEST(TcpServerTest, WhoPausesIsToldOfWhatTheKernelTookAtOnce) {
    Server server(make<OneByOne>());
    RawSocket client(server.port());
    for (const std::string line : {"first\n", "second\n", "third\n"}) {
        client.send(line);
        EXPECT_EQ(client.read_until("\n"), line);
    }
}

/// Has a place for the first bytes and answers whether they came to it.
class Placed final : public TcpEvents {
public:
    explicit Placed(TcpStream& stream) : stream_(stream) {}
    std::span<char> room() override { return std::span(place_).subspan(filled_); }
    void on_data(std::string_view data) override {
        const bool in_place = data.data() == place_.data() + filled_;
        if (in_place) filled_ += data.size();
        if (filled_ < place_.size()) return;
        stream_.write(in_place ? "placed " : std::string(data));
    }
    void on_end_of_input() override { stream_.close_when_sent(); }
    void on_broken(const Error& /*why*/) override {}

private:
    TcpStream& stream_;
    std::array<char, 5> place_{};
    std::size_t filled_ = 0;
};

TEST(TcpServerTest, BytesAreReadToWhereTheyBelong) {
    Server server(make<Placed>());
    RawSocket client(server.port());
    client.send("12345and the rest\n");
    EXPECT_EQ(client.read_until("\n"), "placed and the rest\n");
}

/// Answers how many bytes came before its time was over; then reads on.
class Impatient final : public TcpEvents {
public:
    explicit Impatient(TcpStream& stream) : stream_(stream) {
        stream_.pause_input();
        stream_.expect_within(milliseconds(1));
    }
    void on_data(std::string_view data) override { stream_.write(data); }
    void on_overdue() override {
        stream_.write("overdue\n");
        stream_.resume_input();
    }
    void on_end_of_input() override { stream_.close_when_sent(); }
    void on_broken(const Error& /*why*/) override {}

private:
    TcpStream& stream_;
};

TEST(TcpServerTest, NothingIsReadWhilePaused) {
    Server server(make<Impatient>());
    RawSocket client(server.port());
    client.send("data\n");
    EXPECT_EQ(client.read_until("data\n"), "overdue\ndata\n");
}

TEST(TcpServerTest, TheEndOfTheLoopIsTheEndOfItsConnections) {
    Server server(make<Echo>());
    RawSocket client(server.port());
    client.send("hello\n");
    EXPECT_EQ(client.read_until("\n"), "hello\n");
    server.abandon();
    EXPECT_EQ(client.read_all(), "");
}

TEST(TcpClientTest, WhatIsWrittenBeforeThereIsAConnectionWaitsForIt) {
    Server server(make<Echo>());
    LoopThread thread;
    for (const std::string host : {"127.0.0.1", "localhost"}) {
        Client client(thread, {.host = host, .port = server.port()});
        client.write("hello");
        EXPECT_EQ(client.wait_for(5), "hello") << host;
    }
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST(TcpClientTest, NobodyThereIsAnError) {
    std::uint16_t port = 0;
    {
        const RawListener listener;
        port = listener.port();
    }
    LoopThread thread;
    Client client(thread, {.host = "127.0.0.1", .port = port});
    const auto error = client.wait_for_end();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error->message(), ::testing::HasSubstr("127.0.0.1:" + std::to_string(port)));
}

TEST(TcpClientTest, AServerThatEndsIsNoticed) {
    Server server(make<Echo>());
    LoopThread thread;
    Client client(thread, {.host = "127.0.0.1", .port = server.port()});
    client.write("hello");
    client.wait_for(5);
    client.write("quit");
    EXPECT_FALSE(client.wait_for_end());
    Client other(thread, {.host = "127.0.0.1", .port = server.port()});
    other.write("hello");
    other.wait_for(5);
    server.close();
    other.wait_for_end();
}

class TcpTlsTest : public ::testing::Test {
protected:
    TcpTlsTest() { certificates_.make("server"); }

    [[nodiscard]] TcpServerOptions options() {
        auto identity =
            TlsIdentity::load(certificates_.certificate("server"), certificates_.key("server"));
        EXPECT_TRUE(identity) << (identity ? "" : identity.error().to_string());
        return {.tls = *identity, .handshake_time = milliseconds(100)};
    }
    [[nodiscard]] TcpTarget target(std::uint16_t port) {
        auto trust = TlsTrust::load(certificates_.ca_file());
        EXPECT_TRUE(trust) << (trust ? "" : trust.error().to_string());
        return {.host = "127.0.0.1", .port = port, .trust = *trust};
    }

    testing::Certificates certificates_;
};

TEST_F(TcpTlsTest, BytesComeAndGo) {
    Server server(make<Echo>(), options());
    LoopThread thread;
    Client client(thread, target(server.port()));
    const std::string data(1'000'000, 's');
    client.write(data);
    EXPECT_EQ(client.wait_for(data.size()), data);
}

TEST_F(TcpTlsTest, AServerWithoutTlsIsNotSpokenTo) {
    Server server(make<Echo>());
    LoopThread thread;
    Client client(thread, target(server.port()));
    const auto error = client.wait_for_end();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kUnavailable);
}

TEST_F(TcpTlsTest, WhoNeverShakesHandsIsCut) {
    Server server(make<Echo>(), options());
    RawSocket client(server.port());
    client.read_all();
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST_F(TcpTlsTest, AServerThatNeverShakesHandsIsGivenUp) {
    const RawListener listener;
    LoopThread thread;
    TcpTarget silent = target(listener.port());
    silent.connect_time = milliseconds(50);
    Client client(thread, silent);
    const auto error = client.wait_for_end();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kTimeout);
}

}  // namespace
}  // namespace sluice::net
