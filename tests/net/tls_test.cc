#include "net/tls.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/mman.h>

#include <filesystem>
#include <random>

#include "base/subprocess.h"
#include "tests/net/support.h"
#include "tests/support/certificates.h"

namespace sluice::net {
namespace {

using testing::Answer;
using testing::Certificates;
using ::testing::HasSubstr;
using testing::milliseconds;
using testing::RawSocket;
using testing::TestClient;
using testing::TestServer;

void echo(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    exchange->respond(HttpResponse::text(200, request.method + " " + request.body));
}

struct ToolResult {
    int code = -1;
    std::string output;  ///< Both streams.
};

/// Runs another program with nothing on its standard input.
ToolResult run_tool(std::vector<std::string> argv) {
    const UniqueFd out(::memfd_create("out", MFD_CLOEXEC));
    auto child =
        Subprocess::spawn({.argv = std::move(argv), .fds = {{out.get(), 1}, {out.get(), 2}}});
    EXPECT_TRUE(child) << (child ? "" : child.error().to_string());
    if (!child) return {};
    const auto ended = child->wait(testing::kPatience);
    EXPECT_TRUE(ended);
    std::string text(1024 * 1024, '\0');
    const ssize_t size = ::pread(out.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return {.code = ended ? ended->value : -1, .output = std::move(text)};
}

class TlsTest : public ::testing::Test {
protected:
    TlsTest() { certificates_.make("server"); }

    [[nodiscard]] std::shared_ptr<TlsIdentity> identity(const std::string& name = "server") {
        auto loaded = TlsIdentity::load(certificates_.certificate(name), certificates_.key(name));
        EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().to_string());
        return *loaded;
    }
    [[nodiscard]] HttpServerOptions options(const std::string& name = "server") {
        HttpServerOptions options;
        options.tls = identity(name);
        return options;
    }
    [[nodiscard]] HttpClient::Options trusting() const {
        return {.ca_file = certificates_.ca_file()};
    }
    static std::string url(const TestServer& server, std::string_view host = "127.0.0.1") {
        return "https://" + std::string(host) + ":" + std::to_string(server.port()) + "/";
    }

    Certificates certificates_;
};

TEST_F(TlsTest, LargeMessagesPassUnchangedAndConnectionsAreReused) {
    TestServer server(options(), echo);
    TestClient client(trusting());
    std::string body(3'000'000, '\0');
    std::mt19937 random(1);
    for (char& c : body) c = static_cast<char>('a' + random() % 26);
    for (int i = 0; i < 3; ++i) {
        const Answer answer =
            client.fetch({.method = "POST", .url = url(server, "localhost"), .body = body});
        EXPECT_FALSE(answer.error) << answer.error->to_string();
        EXPECT_EQ(answer.status, 200);
        EXPECT_EQ(answer.body, "POST " + body);
    }
    EXPECT_EQ(server.connections(), 1U);
}

TEST_F(TlsTest, AStreamArrivesAsItIsWritten) {
    std::shared_ptr<HttpExchange> stream;
    TestServer server(options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        exchange->write("first");
        stream = exchange;
    });
    TestClient client(trusting());
    const auto call = client.start({.url = url(server)});
    ASSERT_TRUE(call->wait_for_body(5));
    server.thread().call([&] {
        stream->write(" second");
        stream->end_stream();
        stream.reset();
    });
    EXPECT_EQ(call->wait().body, "first second");
}

TEST_F(TlsTest, AStreamThatIsCutIsAnErrorAndNotAnEnd) {
    TestServer server(options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        exchange->write("part");
        exchange->abort();
    });
    TestClient client(trusting());
    const Answer answer = client.fetch({.url = url(server)});
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code(), ErrorCode::kUnavailable);
}

TEST_F(TlsTest, AServerNobodyVouchesForIsNotTalkedTo) {
    TestServer server(options(), echo);
    TestClient client;  // Believes the system's authorities only.
    const Answer answer = client.fetch({.url = url(server)});
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code(), ErrorCode::kUnavailable);
    EXPECT_THAT(answer.error->message(), HasSubstr("its certificate is not accepted"));
}

TEST_F(TlsTest, ACertificateForAnotherNameOrOfThePastIsNotAccepted) {
    certificates_.make("other", {.names = "DNS:other.example"});
    certificates_.make("old", {.valid_for = std::chrono::seconds(-3600)});
    TestClient client(trusting());
    {
        TestServer server(options("other"), echo);
        EXPECT_THAT(client.fetch({.url = url(server, "localhost")}).error->message(),
                    HasSubstr("mismatch"));
        EXPECT_THAT(client.fetch({.url = url(server)}).error->message(), HasSubstr("mismatch"));
    }
    TestServer server(options("old"), echo);
    EXPECT_THAT(client.fetch({.url = url(server)}).error->message(), HasSubstr("expired"));
}

TEST_F(TlsTest, AnAuthorityFileThatIsNoneIsAnErrorOfTheCall) {
    TestServer server(options(), echo);
    TestClient client({.ca_file = certificates_.key("server")});
    const Answer answer = client.fetch({.url = url(server)});
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->place(), certificates_.key("server"));
}

TEST_F(TlsTest, AFileThatDoesNotFitIsNamed) {
    certificates_.make("other");
    const auto mixed =
        TlsIdentity::load(certificates_.certificate("server"), certificates_.key("other"));
    ASSERT_FALSE(mixed);
    EXPECT_EQ(mixed.error().place(), certificates_.key("other"));
    const auto missing = TlsIdentity::load("/none.pem", certificates_.key("other"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().place(), "/none.pem");
    EXPECT_FALSE(TlsIdentity::load(certificates_.key("server"), certificates_.key("server")));
}

TEST_F(TlsTest, AReloadChangesNewConnectionsAndLeavesOldOnesAlone) {
    const auto shown = identity();
    HttpServerOptions serving;
    serving.tls = shown;
    std::shared_ptr<HttpExchange> stream;
    TestServer server(serving, [&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        exchange->write("old");
        if (stream == nullptr) {
            stream = exchange;
        } else {
            exchange->end_stream();
        }
    });
    TestClient client(trusting());
    const auto open = client.start({.url = url(server)});
    ASSERT_TRUE(open->wait_for_body(3));
    EXPECT_FALSE(shown->changed());

    certificates_.make("server", {.names = "DNS:new.example", .common_name = "new"});
    EXPECT_TRUE(shown->changed());
    EXPECT_TRUE(server.thread().call([&] { return shown->reload().has_value(); }));
    EXPECT_FALSE(shown->changed());
    TestClient stranger(trusting());
    EXPECT_THAT(stranger.fetch({.url = url(server)}).error->message(), HasSubstr("mismatch"));

    // One that can't be read changes nothing.
    std::filesystem::resize_file(certificates_.certificate("server"), 10);
    EXPECT_TRUE(shown->changed());
    EXPECT_FALSE(server.thread().call([&] { return shown->reload().has_value(); }));
    EXPECT_FALSE(shown->changed());
    EXPECT_THAT(stranger.fetch({.url = url(server)}).error->message(), HasSubstr("mismatch"));

    server.thread().call([&] {
        stream->write(" still");
        stream->end_stream();
        stream.reset();
    });
    EXPECT_EQ(open->wait().body, "old still");
}

TEST_F(TlsTest, WhoDoesNotFinishTheHandshakeIsCutOff) {
    HttpServerOptions hasty = options();
    hasty.handshake_time = milliseconds(20);
    TestServer server(hasty, echo);
    RawSocket silent(server.port());
    EXPECT_EQ(silent.read_all(), "");
    EXPECT_TRUE(server.wait_for_connections(0));
}

TEST_F(TlsTest, WhatIsNotTlsEndsThatConnectionOnly) {
    TestServer server(options(), echo);
    std::mt19937 random(1);
    for (int i = 0; i < 50; ++i) {
        RawSocket raw(server.port());
        std::string noise =
            i == 0 ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n" : std::string("\x16\x03\x01", 3);
        while (i > 0 && noise.size() < 600) noise += static_cast<char>(random());
        static_cast<void>(raw.send(noise));
        raw.half_close();
        static_cast<void>(raw.read_all());
    }
    TestClient client(trusting());
    EXPECT_EQ(client.fetch({.url = url(server)}).status, 200);
}

/// A client that speaks TLS and reads no more than the handshake: the kernel's buffers fill, and
/// after them the server's.
class SilentTlsClient {
public:
    SilentTlsClient(std::uint16_t port, const std::string& ca_file)
        : socket_(port, 4096), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
        EXPECT_EQ(SSL_CTX_load_verify_file(context_.get(), ca_file.c_str()), 1);
        SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
        tls_.reset(SSL_new(context_.get()));
        SSL_set_fd(tls_.get(), socket_.fd());
        EXPECT_EQ(SSL_connect(tls_.get()), 1);
    }
    void send(std::string_view text) {
        EXPECT_EQ(SSL_write(tls_.get(), text.data(), static_cast<int>(text.size())),
                  static_cast<int>(text.size()));
    }
    void close() { socket_.close(); }

private:
    RawSocket socket_;
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
};

TEST_F(TlsTest, AClientThatLeavesIsNoticed) {
    testing::Signal begun;
    testing::Signal gone;
    std::shared_ptr<HttpExchange> kept;
    TestServer server(options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
        kept = exchange;
        exchange->on_client_gone([&] { gone.set(); });
        exchange->begin_stream(200, {});
        begun.set();
    });
    SilentTlsClient client(server.port(), certificates_.ca_file());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(begun.wait());
    EXPECT_FALSE(gone.is_set());
    client.close();
    EXPECT_TRUE(gone.wait());
    server.thread().call([&] { kept.reset(); });
}

TEST_F(TlsTest, AClientThatNeverReadsIsBounded) {
    testing::Signal gone;
    HttpServerOptions small = options();
    small.stream_backlog_bytes = 100'000;
    TestServer server(small, [&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->on_client_gone([&] { gone.set(); });
        exchange->begin_stream(200, {});
        // More than the kernel's buffers take while nobody reads.
        for (int i = 0; i < 2'000 && exchange->backlog_bytes() <= 200'000; ++i)
            exchange->write(std::string(10'000, 'x'));
    });
    SilentTlsClient client(server.port(), certificates_.ca_file());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(gone.wait());
}

TEST_F(TlsTest, CurlIsAnsweredAndDoesNotGetBelowTls12) {
    TestServer server(options(), echo);
    const std::string address = url(server, "localhost");
    const ToolResult good =
        run_tool({"curl", "-sS", "--cacert", certificates_.ca_file(), "-d", "hello", "-w",
                  " %{http_version} %{ssl_verify_result}", address});
    EXPECT_EQ(good.code, 0) << good.output;
    EXPECT_EQ(good.output, "POST hello 1.1 0");
    const ToolResult old =
        run_tool({"curl", "-sS", "--cacert", certificates_.ca_file(), "--tls-max", "1.1",
                  "--ciphers", "DEFAULT@SECLEVEL=0", address});
    EXPECT_EQ(old.code, 35) << old.output;
    const ToolResult stranger = run_tool({"curl", "-sS", address});
    EXPECT_EQ(stranger.code, 60) << stranger.output;
}

TEST_F(TlsTest, OpensslClientSeesTheProtocolsThatWerePromised) {
    TestServer server(options(), echo);
    const auto connect = [&](std::vector<std::string> more) {
        std::vector<std::string> argv = {"openssl",
                                         "s_client",
                                         "-connect",
                                         "127.0.0.1:" + std::to_string(server.port()),
                                         "-CAfile",
                                         certificates_.ca_file(),
                                         "-verify_return_error"};
        argv.insert(argv.end(), more.begin(), more.end());
        return run_tool(argv);
    };
    const ToolResult modern = connect({"-alpn", "h2,http/1.1"});
    EXPECT_EQ(modern.code, 0) << modern.output;
    EXPECT_THAT(modern.output, HasSubstr("New, TLSv1.3"));
    EXPECT_THAT(modern.output, HasSubstr("ALPN protocol: http/1.1"));
    const ToolResult older = connect({"-tls1_2"});
    EXPECT_THAT(older.output, HasSubstr("New, TLSv1.2, Cipher is ECDHE-ECDSA-"));
    EXPECT_NE(connect({"-alpn", "h2"}).code, 0);
    EXPECT_NE(connect({"-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"}).code, 0);
    EXPECT_NE(connect({"-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"}).code, 0);
}

// What a server says by ending the connection is believed only if it said goodbye.
TEST_F(TlsTest, ABodyWithoutALengthIsCompleteOnlyAfterAGoodbye) {
    TestServer server(options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->begin_stream(200, {});
        exchange->write("all of it");
        exchange->end_stream();
    });
    const ToolResult whole =
        run_tool({"curl", "-sS", "--http1.0", "--cacert", certificates_.ca_file(), url(server)});
    EXPECT_EQ(whole.code, 0) << whole.output;
    EXPECT_EQ(whole.output, "all of it");
}

TEST_F(TlsTest, AnIdentityKnowsWhenItsCertificateEnds) {
    const auto left = [&] { return identity()->valid_until() - std::chrono::system_clock::now(); };
    EXPECT_NEAR(std::chrono::duration<double>(left()).count(), 24 * 3600.0, 600.0);
    certificates_.make("server", {.valid_for = -std::chrono::hours(1)});
    EXPECT_LT(left(), std::chrono::minutes(-50));
}

}  // namespace
}  // namespace sluice::net
