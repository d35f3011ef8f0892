#include "net/tcp_server.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "net/connection_stream.h"
#include "net/server_handle.h"
#include "net/tls_session.h"

namespace sluice::net {
namespace {

/// One connection with what serves it.
class ServedStream final : public ConnectionStream {
public:
    using ConnectionStream::ConnectionStream;
    /// What serves it goes before the connection is cut.
    ~ServedStream() override { events_.reset(); }

    void begin(Socket socket, const TcpServerOptions& options, const TcpServer::Factory& factory,
               std::string peer) {
        events_ = factory(*this, std::move(peer));
        if (options.tls == nullptr) return connection()->begin(std::move(socket), *events_);
        auto session = options.tls->open(socket.native_handle());
        connection()->begin_secure(std::move(socket), *events_, std::move(session),
                                   options.handshake_time);
    }

private:
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

class TcpHandle final : public ServerHandle<TcpServer, Server> {
public:
    using ServerHandle::ServerHandle;
    [[nodiscard]] std::uint64_t refused() const override { return server().refused(); }
};

}  // namespace

Result<std::unique_ptr<TcpServer>> TcpServer::listen(EventLoop& loop, TcpServerOptions options,
                                                     Factory factory) {
    return listen_with<TcpHandle, Server>(loop, std::move(options), std::move(factory));
}

}  // namespace sluice::net
