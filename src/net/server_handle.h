#pragma once

// What HttpServer and TcpServer have in common: a server that listens at an address and lives until its
// owner lets go of it, on its loop's thread. For the sources of this folder only.

#include <cstdint>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "base/error.h"
#include "net/listener.h"
#include "net/loop_impl.h"

namespace sluice::net {

/// `Server` is owned by more than this: what runs may outlive its owner's interest in it.
template <class Interface, class Server>
class ServerHandle : public Interface {
public:
    ServerHandle(std::weak_ptr<EventLoop::Impl> loop, std::shared_ptr<Server> server,
                 std::uint16_t port)
        : loop_(std::move(loop)), server_(std::move(server)), port_(port) {}
    ~ServerHandle() override { server().cut_all(); }

    [[nodiscard]] std::uint16_t port() const override { return port_; }
    [[nodiscard]] std::size_t connections() const override { return server().connections(); }
    void stop_accepting() override { server().stop_accepting(); }

protected:
    [[nodiscard]] Server& server() const {
        const auto loop = loop_.lock();
        SLUICE_ASSERT(loop == nullptr || loop->in_loop_thread());
        return *server_;
    }

private:
    std::weak_ptr<EventLoop::Impl> loop_;
    std::shared_ptr<Server> server_;
    std::uint16_t port_;
};

/// Binds, listens, and starts a `Server` of `options` and `serve`.
template <class Handle, class Server, class Options, class Serve>
[[nodiscard]] Result<std::unique_ptr<Handle>> listen_with(EventLoop& loop, Options options,
                                                          Serve serve) {
    SLUICE_ASSERT(loop.in_loop_thread());
    EventLoop::Impl& impl = loop.impl();
    auto listener = Listener::open(impl, options.address, options.port, options.listen_fd);
    if (!listener) return std::unexpected(listener.error());
    const std::uint16_t port = (*listener)->port();
    const auto server =
        std::make_shared<Server>(impl, *std::move(listener), std::move(options), std::move(serve));
    server->start();
    return std::make_unique<Handle>(impl.weak_from_this(), server, port);
}

}  // namespace sluice::net
