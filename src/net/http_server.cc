#include "net/http_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "base/assert.h"
#include "net/server_connection.h"

namespace sluice::net {
namespace {

constexpr int kListenBacklog = 4096;
// How long to wait after the system refused a connection, for want of files for example.
constexpr std::chrono::milliseconds kAcceptPause{50};

std::string endpoint_text(const Tcp::endpoint& endpoint) {
    const std::string address = endpoint.address().to_string();
    const std::string port = std::to_string(endpoint.port());
    return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

/// Accepts connections and keeps them.
class Server final : public ServerCore,
                     public LoopMember,
                     public std::enable_shared_from_this<Server> {
public:
    Server(EventLoop::Impl& loop, Acceptor acceptor, HttpServerOptions server_options,
           HttpHandler server_handler)
        : ServerCore(std::move(server_options), std::move(server_handler)),
          LoopMember(loop),
          acceptor_(std::move(acceptor)) {}

    void accept() {
        if (!acceptor_ || accepting_ || connections_.size() >= options.connections) return;
        accepting_ = true;
        acceptor_->async_accept(
            peer_, [self = shared_from_this()](const SystemError& error, Socket socket) {
                self->accepting_ = false;
                if (self->loop() == nullptr || !self->acceptor_) return;
                const Turn turn(*self->loop());
                self->loop()->guarded([&] { self->accepted(error, std::move(socket)); });
            });
    }

    void stop_accepting() {
        draining = true;
        acceptor_.reset();
        pause_.reset();
        for (const auto& connection : open_connections()) connection->close_if_idle();
    }

    void cut_all() noexcept {
        acceptor_.reset();
        pause_.reset();
        for (const auto& connection : open_connections()) connection->cut();
    }

    void forget(ServerConnection& connection) override {
        connections_.erase(&connection);
        if (loop() != nullptr) accept();
    }

    [[nodiscard]] std::size_t connections() const { return connections_.size(); }

private:
    void loop_ends() noexcept override {
        acceptor_.reset();
        pause_.reset();
        connections_.clear();
    }

    [[nodiscard]] std::vector<std::shared_ptr<ServerConnection>> open_connections() const {
        std::vector<std::shared_ptr<ServerConnection>> all;
        all.reserve(connections_.size());
        for (const auto& [key, connection] : connections_) all.push_back(connection);
        return all;
    }

    void accepted(const SystemError& error, Socket socket) {
        if (error == asio::error::connection_aborted) return accept();
        if (error) return accept_later();
        const auto connection = std::make_shared<ServerConnection>(
            *loop(), std::move(socket), shared_from_this(), endpoint_text(peer_));
        connections_.emplace(connection.get(), connection);
        connection->start();
        accept();
    }

    void accept_later() {
        pause_.emplace(loop()->context);
        pause_->expires_after(kAcceptPause);
        pause_->async_wait([self = shared_from_this()](const SystemError& error) {
            if (error || self->loop() == nullptr) return;
            const Turn turn(*self->loop());
            self->accept();
        });
    }

    std::optional<Acceptor> acceptor_;
    std::optional<SteadyTimer> pause_;
    Tcp::endpoint peer_;
    bool accepting_ = false;
    std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections_;
};

class ServerHandle final : public HttpServer {
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

Result<Tcp::endpoint> parse_address(const std::string& text, std::uint16_t port) {
    std::string address = text == "localhost" ? "127.0.0.1" : text;
    if (address.starts_with('[') && address.ends_with(']')) {
        address = address.substr(1, address.size() - 2);
    }
    SystemError error;
    const auto parsed = asio::ip::make_address(address, error);
    if (!error) return Tcp::endpoint(parsed, port);
    return std::unexpected(Error::invalid(
        "\"" + text + "\" is not a numeric address to listen on, such as 127.0.0.1 or [::1]",
        "listen"));
}

Error listen_error(const Tcp::endpoint& endpoint, const SystemError& error) {
    if (error == asio::error::address_in_use) {
        return {ErrorCode::kIo, endpoint_text(endpoint) + " is already in use"};
    }
    return Error::io("listen on " + endpoint_text(endpoint), error.value());
}

Result<Acceptor> listen_on(EventLoop::Impl& loop, const Tcp::endpoint& endpoint) {
    Acceptor acceptor(loop.context);
    SystemError error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(kListenBacklog, error);
    if (error) return std::unexpected(listen_error(endpoint, error));
    return acceptor;
}

Result<Acceptor> adopt(EventLoop::Impl& loop, int listen_fd) {
    const std::string what = "file descriptor " + std::to_string(listen_fd);
    int listening = 0;
    socklen_t size = sizeof listening;
    if (getsockopt(listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) {
        return std::unexpected(Error::io(what, errno));
    }
    sockaddr_storage address{};
    socklen_t address_size = sizeof address;
    const bool named =
        getsockname(listen_fd, reinterpret_cast<sockaddr*>(&address), &address_size) == 0;
    const bool internet = address.ss_family == AF_INET || address.ss_family == AF_INET6;
    if (listening == 0 || !named || !internet) {
        return std::unexpected(Error::invalid(what + " is not a listening TCP socket"));
    }
    Acceptor acceptor(loop.context);
    SystemError error;
    acceptor.assign(address.ss_family == AF_INET ? Tcp::v4() : Tcp::v6(), listen_fd, error);
    if (error) return std::unexpected(Error::io(what, error.value()));
    return acceptor;
}

Result<Acceptor> make_acceptor(EventLoop::Impl& loop, const HttpServerOptions& options) {
    if (options.listen_fd >= 0) return adopt(loop, options.listen_fd);
    const auto endpoint = parse_address(options.address, options.port);
    if (!endpoint) return std::unexpected(endpoint.error());
    return listen_on(loop, *endpoint);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(EventLoop& loop, HttpServerOptions options,
                                                       HttpHandler handler) {
    SLUICE_ASSERT(loop.in_loop_thread());
    EventLoop::Impl& impl = loop.impl();
    auto acceptor = make_acceptor(impl, options);
    if (!acceptor) return std::unexpected(acceptor.error());
    SystemError error;
    acceptor->non_blocking(true, error);
    const Tcp::endpoint local = acceptor->local_endpoint(error);
    if (error) return std::unexpected(Error::io("listen", error.value()));
    const auto server = std::make_shared<Server>(impl, std::move(*acceptor), std::move(options),
                                                 std::move(handler));
    server->accept();
    return std::make_unique<ServerHandle>(impl.weak_from_this(), server, local.port());
}

}  // namespace sluice::net
