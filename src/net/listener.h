#pragma once

// A socket where connections come in, one after the other, as long as there is room for them.
//
// Private to net/.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "net/loop_impl.h"

namespace sluice::net {

class Listener final : public LoopMember, public std::enable_shared_from_this<Listener> {
public:
    /// Binds and listens. `address` is numeric or "localhost"; port 0 takes a free one. A `listen_fd`
    /// that is not negative replaces both, and is owned.
    [[nodiscard]] static Result<std::shared_ptr<Listener>> open(EventLoop::Impl& loop,
                                                                const std::string& address,
                                                                std::uint16_t port, int listen_fd);

    /// `peer` is the other side's address with its port.
    using Take = std::function<void(Socket socket, std::string peer)>;

    /// Begins to accept. Nothing is taken while `has_room` says so, until `resume`.
    void start(Take take, std::function<bool()> has_room);
    void resume();
    /// Closes the socket; nothing is called any more.
    void stop() noexcept;

    [[nodiscard]] std::uint16_t port() const { return port_; }

private:
    Listener(EventLoop::Impl& loop, Acceptor acceptor, std::uint16_t port);

    void loop_ends() noexcept override { stop(); }
    void accepted(const SystemError& error, Socket socket);
    void resume_later();

    std::optional<Acceptor> acceptor_;
    std::optional<SteadyTimer> pause_;
    Tcp::endpoint peer_;
    std::uint16_t port_;
    bool accepting_ = false;
    Take take_;
    std::function<bool()> has_room_;
};

}  // namespace sluice::net
