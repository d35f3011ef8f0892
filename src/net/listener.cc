#include "net/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

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

Result<Acceptor> make_acceptor(EventLoop::Impl& loop, const std::string& address,
                               std::uint16_t port, int listen_fd) {
    if (listen_fd >= 0) return adopt(loop, listen_fd);
    const auto endpoint = parse_address(address, port);
    if (!endpoint) return std::unexpected(endpoint.error());
    return listen_on(loop, *endpoint);
}

}  // namespace

Listener::Listener(EventLoop::Impl& loop, Acceptor acceptor, std::uint16_t port)
    : LoopMember(loop), acceptor_(std::move(acceptor)), port_(port) {}

Result<std::shared_ptr<Listener>> Listener::open(EventLoop::Impl& loop, const std::string& address,
                                                 std::uint16_t port, int listen_fd) {
    auto acceptor = make_acceptor(loop, address, port, listen_fd);
    if (!acceptor) return std::unexpected(acceptor.error());
    SystemError error;
    acceptor->non_blocking(true, error);
    const Tcp::endpoint local = acceptor->local_endpoint(error);
    if (error) return std::unexpected(Error::io("listen", error.value()));
    return std::shared_ptr<Listener>(new Listener(loop, std::move(*acceptor), local.port()));
}

void Listener::start(Take take, std::function<bool()> has_room) {
    take_ = std::move(take);
    has_room_ = std::move(has_room);
    resume();
}

void Listener::resume() {
    if (!acceptor_ || accepting_ || !has_room_()) return;
    accepting_ = true;
    acceptor_->async_accept(
        peer_, [self = shared_from_this()](const SystemError& error, Socket socket) {
            self->accepting_ = false;
            if (self->loop() == nullptr || !self->acceptor_) return;
            const Turn turn(*self->loop());
            self->loop()->guarded([&] { self->accepted(error, std::move(socket)); });
        });
}

void Listener::stop() noexcept {
    acceptor_.reset();
    pause_.reset();
}

void Listener::accepted(const SystemError& error, Socket socket) {
    if (error == asio::error::connection_aborted) return resume();
    if (error) return resume_later();
    take_(std::move(socket), endpoint_text(peer_));
    resume();
}

void Listener::resume_later() {
    pause_.emplace(loop()->context);
    pause_->expires_after(kAcceptPause);
    pause_->async_wait([self = shared_from_this()](const SystemError& error) {
        if (error || self->loop() == nullptr) return;
        const Turn turn(*self->loop());
        self->resume();
    });
}

}  // namespace sluice::net
