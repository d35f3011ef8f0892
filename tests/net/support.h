#pragma once

// A loop in a thread, a server on it, and sockets without any manners.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/http_server.h"

namespace sluice::net::testing {

using std::chrono::milliseconds;

/// Far beyond anything a test waits for: whoever hits it has hung.
constexpr std::chrono::seconds kPatience{60};

class LoopThread {
public:
    LoopThread() : thread_([this] { loop_.run(); }) {}
    ~LoopThread() { stop(); }

    void stop() {
        loop_.stop();
        if (thread_.joinable()) thread_.join();
    }

    /// Runs `work` on the loop and returns what it returns.
    template <class Work>
    auto call(Work work) {
        std::promise<decltype(work())> promise;
        auto result = promise.get_future();
        loop_.post([&] {
            if constexpr (std::is_void_v<decltype(work())>) {
                work();
                promise.set_value();
            } else {
                promise.set_value(work());
            }
        });
        return result.get();
    }

    [[nodiscard]] EventLoop& loop() { return loop_; }

private:
    EventLoop loop_;
    std::thread thread_;
};

class TestServer {
public:
    TestServer(HttpServerOptions options, HttpHandler handler) {
        port_ = loop_.call([&] {
            auto server = HttpServer::listen(loop_.loop(), std::move(options), std::move(handler));
            EXPECT_TRUE(server.has_value()) << (server ? "" : server.error().to_string());
            server_ = std::move(*server);
            return server_->port();
        });
    }
    explicit TestServer(HttpHandler handler) : TestServer({}, std::move(handler)) {}
    ~TestServer() { close(); }

    void close() {
        loop_.call([&] { server_.reset(); });
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url(std::string_view path = "/") const {
        return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
    }
    [[nodiscard]] LoopThread& thread() { return loop_; }
    [[nodiscard]] HttpServer& server() { return *server_; }
    [[nodiscard]] std::size_t connections() {
        return loop_.call([&] { return server_->connections(); });
    }
    /// Waits until the server has `count` connections.
    bool wait_for_connections(std::size_t count) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < end) {
            if (connections() == count) return true;
            std::this_thread::yield();
        }
        return false;
    }

private:
    LoopThread loop_;
    std::unique_ptr<HttpServer> server_;
    std::uint16_t port_ = 0;
};

/// Happens once; anybody can wait for it.
class Signal {
public:
    void set() {
        const std::lock_guard lock(mutex_);
        set_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] bool wait() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience, [&] { return set_; });
    }
    [[nodiscard]] bool is_set() {
        const std::lock_guard lock(mutex_);
        return set_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
};

class RawSocket {
public:
    explicit RawSocket(std::uint16_t port, int receive_buffer = 0)
        : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
        if (receive_buffer > 0) {
            setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        }
        if (port != 0) connect_to(port);
    }
    ~RawSocket() { close(); }
    RawSocket(const RawSocket&) = delete;
    RawSocket& operator=(const RawSocket&) = delete;

    void connect_to(std::uint16_t port) const {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }

    /// False once the other side is gone.
    bool send(std::string_view data) const {
        while (!data.empty()) {
            const ssize_t sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            data.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }

    /// Everything until the other side closes; `reset` tells how it did.
    std::string read_all() {
        while (read_some()) {
        }
        return std::exchange(received_, {});
    }

    /// Everything up to and with `end`, or until the other side closes.
    std::string read_until(std::string_view end) {
        while (true) {
            const std::size_t at = received_.find(end);
            if (at != std::string::npos) {
                std::string text = received_.substr(0, at + end.size());
                received_.erase(0, at + end.size());
                return text;
            }
            if (!read_some()) return std::exchange(received_, {});
        }
    }

    /// One answer with Content-Length.
    std::string read_answer() {
        std::string head = read_until("\r\n\r\n");
        const std::size_t at = head.find("Content-Length: ");
        if (at == std::string::npos) return head;
        const std::size_t length = std::stoul(head.substr(at + 16));
        while (received_.size() < length && read_some()) {
        }
        head += received_.substr(0, length);
        received_.erase(0, length);
        return head;
    }

    void half_close() const { shutdown(fd_, SHUT_WR); }
    void reset_connection() {
        const linger now{.l_onoff = 1, .l_linger = 0};
        setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close();
    }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    [[nodiscard]] bool was_reset() const { return reset_; }
    [[nodiscard]] int fd() const { return fd_; }

private:
    bool read_some() {
        pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
        const int patience = static_cast<int>(milliseconds(kPatience).count());
        if (poll(&ready, 1, patience) <= 0) {
            ADD_FAILURE() << "nothing came";
            return false;
        }
        char buffer[16 * 1024];
        const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
        if (count < 0) reset_ = true;
        if (count <= 0) return false;
        received_.append(buffer, static_cast<std::size_t>(count));
        return true;
    }

    int fd_;
    bool reset_ = false;
    std::string received_;
};

/// Listens and leaves the rest to the test.
class RawListener {
public:
    RawListener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(listen(fd_, 64), 0);
        socklen_t size = sizeof address;
        getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
    }
    ~RawListener() {
        if (fd_ >= 0) ::close(fd_);
    }
    RawListener(const RawListener&) = delete;
    RawListener& operator=(const RawListener&) = delete;

    [[nodiscard]] int accept() const { return ::accept(fd_, nullptr, nullptr); }
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url(std::string_view path = "/") const {
        return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
    }

private:
    int fd_;
    std::uint16_t port_ = 0;
};

/// Plays a server that answers each accepted connection with fixed bytes.
class ScriptedServer {
public:
    /// Connection i gets `answers[i]` once its first request's header is there; then it is closed.
    explicit ScriptedServer(std::vector<std::string> answers)
        : thread_([this, answers = std::move(answers)] {
              for (const std::string& answer : answers) {
                  const int fd = listener_.accept();
                  std::string seen;
                  char byte = 0;
                  while (seen.find("\r\n\r\n") == std::string::npos && recv(fd, &byte, 1, 0) == 1) {
                      seen += byte;
                  }
                  requests_.push_back(seen);
                  static_cast<void>(::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL));
                  ::close(fd);
              }
          }) {}
    ~ScriptedServer() { join(); }
    void join() {
        if (thread_.joinable()) thread_.join();
    }
    [[nodiscard]] std::string url(std::string_view path = "/") const { return listener_.url(path); }
    /// After `join`.
    [[nodiscard]] const std::vector<std::string>& requests() const { return requests_; }

private:
    RawListener listener_;
    std::vector<std::string> requests_;
    std::thread thread_;
};

struct Answer {
    int status = 0;
    HttpHeaders headers;
    std::string body;
    std::optional<Error> error;
};

/// One call of `HttpClient`, waited for from outside the loop.
class PendingCall {
public:
    PendingCall(LoopThread& thread, HttpClient& client, ClientRequest request) : thread_(thread) {
        thread_.call([&] { handle_ = client.start(std::move(request), events()); });
    }
    ~PendingCall() { cancel(); }

    void cancel() {
        thread_.call([&] { handle_.reset(); });
    }
    Answer wait() {
        EXPECT_TRUE(done_.wait());
        return thread_.call([&] { return answer_; });
    }
    /// Waits until the body has at least `bytes`.
    bool wait_for_body(std::size_t bytes) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience, [&] { return body_bytes_ >= bytes; });
    }
    bool wait_for_head() { return head_.wait(); }

private:
    ClientEvents events() {
        return {.on_head =
                    [this](int status, const HttpHeaders& headers) {
                        EXPECT_EQ(std::exchange(answer_.status, status), 0);
                        answer_.headers = headers;
                        head_.set();
                    },
                .on_data =
                    [this](std::string_view data) {
                        answer_.body += data;
                        const std::lock_guard lock(mutex_);
                        body_bytes_ = answer_.body.size();
                        changed_.notify_all();
                    },
                .on_done = [this] { finish(); },
                .on_error =
                    [this](const Error& error) {
                        answer_.error = error;
                        finish();
                    }};
    }
    void finish() {
        EXPECT_FALSE(done_.is_set());
        handle_.reset();  // The last event may destroy the handle it belongs to.
        done_.set();
    }

    LoopThread& thread_;
    std::unique_ptr<HttpCall> handle_;
    Answer answer_;
    Signal head_;
    Signal done_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t body_bytes_ = 0;
};

/// A client on a loop of its own.
class TestClient {
public:
    explicit TestClient(HttpClient::Options options = {}) {
        thread_.call([&] { client_ = std::make_unique<HttpClient>(thread_.loop(), options); });
    }
    ~TestClient() { close(); }
    void close() {
        thread_.call([&] { client_.reset(); });
    }

    Answer fetch(ClientRequest request) {
        return PendingCall(thread_, *client_, std::move(request)).wait();
    }
    std::unique_ptr<PendingCall> start(ClientRequest request) {
        return std::make_unique<PendingCall>(thread_, *client_, std::move(request));
    }
    [[nodiscard]] LoopThread& thread() { return thread_; }
    [[nodiscard]] HttpClient& client() { return *client_; }

private:
    LoopThread thread_;
    std::unique_ptr<HttpClient> client_;
};

}  // namespace sluice::net::testing
