#include "net/tcp_server.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "net/listener.h"
#include "net/stream_connection.h"
#include "net/tls_session.h"

namespace sluice::net {
namespace {

/// One connection with what serves it.
class ServedStream final : public TcpStream {
public:
    ServedStream(EventLoop::Impl& loop, StreamConnection::Options options,
                 std::function<void()> over)
        : connection_(
              std::make_shared<StreamConnection>(loop, std::move(options), std::move(over))) {}
    ~ServedStream() override {
        events_.reset();
        connection_->cut();
    }

    void begin(Socket socket, const TcpServerOptions& options, const TcpServer::Factory& factory,
               std::string peer) {
        events_ = factory(*this, std::move(peer));
        if (options.tls == nullptr) return connection_->begin(std::move(socket), *events_);
        auto session = options.tls->open(socket.native_handle());
        connection_->begin_secure(std::move(socket), *events_, std::move(session),
                                  options.handshake_time);
    }

    void write(std::string_view data) override { connection_->write(data); }
    void share(SharedText data) override { connection_->share(std::move(data)); }
    [[nodiscard]] std::size_t backlog_bytes() const override {
        return connection_->backlog_bytes();
    }
    void pause_input() override { connection_->pause_input(); }
    void resume_input() override { connection_->resume_input(); }
    void expect_within(std::chrono::milliseconds time) override {
        connection_->expect_within(time);
    }
    void expect_nothing() override { connection_->expect_nothing(); }
    void close_when_sent() override { connection_->close_when_sent(); }
    void cut() override { connection_->cut(); }

private:
    const std::shared_ptr<StreamConnection> connection_;
    std::unique_ptr<TcpEvents> events_;
};

class Server final : public LoopMember, public std::enable_shared_from_this<Server> {
public:
    Server(EventLoop::Impl& loop, std::shared_ptr<Listener> listener, TcpServerOptions options,
           TcpServer::Factory factory)
        : LoopMember(loop),
          options_(std::move(options)),
          factory_(std::move(factory)),
          listener_(std::move(listener)) {}

    void start() {
        listener_->start(
            [weak = weak_from_this()](Socket socket, std::string peer) {
                if (const auto self = weak.lock()) self->take(std::move(socket), std::move(peer));
            },
            [weak = weak_from_this()] {
                const auto self = weak.lock();
                return self != nullptr && (self->has_room() || !self->options_.refusal.empty());
            });
    }

    void stop_accepting() noexcept { listener_->stop(); }
    void cut_all() noexcept {
        listener_->stop();
        const auto dropped = std::exchange(streams_, {});
    }
    [[nodiscard]] std::size_t connections() const { return streams_.size(); }
    [[nodiscard]] std::uint64_t refused() const { return refused_; }

private:
    void loop_ends() noexcept override { cut_all(); }
    [[nodiscard]] bool has_room() const { return streams_.size() < options_.connections; }

    void take(Socket socket, std::string peer) {
        if (!has_room()) return refuse(std::move(socket));
        const std::uint64_t number = next_++;
        auto stream = std::make_unique<ServedStream>(
            *loop(), StreamConnection::Options{.name = peer, .write_stall = options_.write_stall},
            [weak = weak_from_this(), number] {
                if (const auto self = weak.lock()) self->forget(number);
            });
        ServedStream& begun = *streams_.emplace(number, std::move(stream)).first->second;
        begun.begin(std::move(socket), options_, factory_, std::move(peer));
    }

    void refuse(Socket socket) {
        ++refused_;
        SystemError ignored;
        socket.non_blocking(true, ignored);
        if (options_.tls != nullptr) return;
        socket.write_some(asio::buffer(options_.refusal), ignored);
        socket.shutdown(Socket::shutdown_send, ignored);
    }

    /// What serves the stream may be in the middle of something: it goes when that is done.
    void forget(std::uint64_t number) {
        const auto found = streams_.find(number);
        if (found == streams_.end() || loop() == nullptr) return;
        loop()->post([gone = std::shared_ptr<ServedStream>(std::move(found->second))] {});
        streams_.erase(found);
        listener_->resume();
    }

    const TcpServerOptions options_;
    const TcpServer::Factory factory_;
    const std::shared_ptr<Listener> listener_;
    std::unordered_map<std::uint64_t, std::unique_ptr<ServedStream>> streams_;
    std::uint64_t next_ = 0;
    std::uint64_t refused_ = 0;
};

class ServerHandle final : public TcpServer {
public:
    ServerHandle(std::weak_ptr<EventLoop::Impl> loop, std::shared_ptr<Server> server,
                 std::uint16_t port)
        : loop_(std::move(loop)), server_(std::move(server)), port_(port) {}
    ~ServerHandle() override {
        check_thread();
        server_->cut_all();
    }

    [[nodiscard]] std::uint16_t port() const override { return port_; }
    [[nodiscard]] std::size_t connections() const override {
        check_thread();
        return server_->connections();
    }
    [[nodiscard]] std::uint64_t refused() const override {
        check_thread();
        return server_->refused();
    }
    void stop_accepting() override {
        check_thread();
        server_->stop_accepting();
    }

private:
    void check_thread() const {
        const auto loop = loop_.lock();
        SLUICE_ASSERT(loop == nullptr || loop->in_loop_thread());
    }

    std::weak_ptr<EventLoop::Impl> loop_;
    std::shared_ptr<Server> server_;
    std::uint16_t port_;
};

}  // namespace

Result<std::unique_ptr<TcpServer>> TcpServer::listen(EventLoop& loop, TcpServerOptions options,
                                                     Factory factory) {
    SLUICE_ASSERT(loop.in_loop_thread());
    EventLoop::Impl& impl = loop.impl();
    auto listener = Listener::open(impl, options.address, options.port, options.listen_fd);
    if (!listener) return std::unexpected(listener.error());
    const std::uint16_t port = (*listener)->port();
    const auto server = std::make_shared<Server>(impl, *std::move(listener), std::move(options),
                                                 std::move(factory));
    server->start();
    return std::make_unique<ServerHandle>(impl.weak_from_this(), server, port);
}

}  // namespace sluice::net
