#include "net/http_server.h"

#include <utility>
#include <vector>

#include "net/server_connection.h"
#include "net/server_handle.h"

namespace sluice::net {
namespace {

/// Keeps the connections that come in.
class Server final : public ServerCore,
                     public LoopMember,
                     public std::enable_shared_from_this<Server> {
public:
    Server(EventLoop::Impl& loop, std::shared_ptr<Listener> listener,
           HttpServerOptions server_options, HttpHandler server_handler)
        : ServerCore(std::move(server_options), std::move(server_handler)),
          LoopMember(loop),
          listener_(std::move(listener)) {}

    void start() {
        listener_->start(
            [weak = weak_from_this()](Socket socket, std::string peer) {
                if (const auto self = weak.lock()) self->take(std::move(socket), std::move(peer));
            },
            [weak = weak_from_this()] {
                const auto self = weak.lock();
                return self != nullptr && self->connections() < self->options.connections;
            });
    }

    void stop_accepting() {
        draining = true;
        listener_->stop();
        for (const auto& connection : open_connections()) connection->close_if_idle();
    }

    void cut_all() noexcept {
        listener_->stop();
        for (const auto& connection : open_connections()) connection->cut();
    }

    void forget(ServerConnection& connection) override {
        connections_.erase(&connection);
        if (loop() != nullptr) listener_->resume();
    }

    [[nodiscard]] std::size_t connections() const { return connections_.size(); }

private:
    void loop_ends() noexcept override { connections_.clear(); }

    [[nodiscard]] std::vector<std::shared_ptr<ServerConnection>> open_connections() const {
        std::vector<std::shared_ptr<ServerConnection>> all;
        all.reserve(connections_.size());
        for (const auto& [key, connection] : connections_) all.push_back(connection);
        return all;
    }

    void take(Socket socket, std::string peer) {
        const auto connection = std::make_shared<ServerConnection>(
            *loop(), std::move(socket), shared_from_this(), std::move(peer));
        connections_.emplace(connection.get(), connection);
        connection->start();
    }

    const std::shared_ptr<Listener> listener_;
    std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(EventLoop& loop, HttpServerOptions options,
                                                       HttpHandler handler) {
    return listen_with<ServerHandle<HttpServer, Server>, Server>(loop, std::move(options),
                                                                 std::move(handler));
}

}  // namespace sluice::net
