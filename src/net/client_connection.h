#pragma once

// One connection to a server, used by one call at a time, and the pool where it waits for the next.
//
// Private to net/.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/http_client.h"
#include "net/tcp_endpoint.h"
#include "net/tls.h"

namespace sluice::net {

/// The call that a connection serves.
class ConnectionUser {
public:
    virtual void connected() = 0;
    /// There is a connection, but no TLS that can be relied on. It is closed already.
    virtual void not_secured(const SystemError& error) = 0;
    virtual void input(std::string_view data) = 0;
    virtual void input_ended(const SystemError& error) = 0;
    virtual void deadline_passed() = 0;
    virtual void failed() = 0;

protected:
    ~ConnectionUser() = default;
};

class ClientConnection;

/// Idle connections by scheme, host and port, newest last; bounded in number and age.
class ConnectionPool final : public LoopMember,
                             public std::enable_shared_from_this<ConnectionPool> {
public:
    ConnectionPool(EventLoop::Impl& loop, HttpClient::Options options);

    /// An idle connection, or null.
    [[nodiscard]] std::shared_ptr<ClientConnection> take(const std::string& origin);
    void put(const std::string& origin, std::shared_ptr<ClientConnection> connection);
    void forget(const std::string& origin, const ClientConnection& connection);
    /// For https; loaded once. An error is told again each time.
    [[nodiscard]] Result<std::shared_ptr<const TlsTrust>> trust();
    /// Closes what is idle; nothing is kept from now on.
    void shut() noexcept;

    using LoopMember::loop;

private:
    struct Idle {
        std::shared_ptr<ClientConnection> connection;
        Clock::time_point expires;
    };

    void loop_ends() noexcept override;
    void sweep_later();
    void sweep();

    HttpClient::Options options_;
    std::shared_ptr<const TlsTrust> trust_;
    std::unordered_map<std::string, std::vector<Idle>> idle_;
    std::optional<SteadyTimer> sweeper_;
    bool shut_ = false;
};

class ClientConnection final : public TcpEndpoint {
public:
    /// `socket` is connected; `origin` names the connection in a pool.
    ClientConnection(EventLoop::Impl& loop, Socket socket, std::string origin);

    /// Serves `user`, after a handshake with `host` where there is a `trust`. It hears of it at once
    /// if there is none.
    void begin(const std::weak_ptr<ConnectionUser>& user, const std::string& host,
               const TlsTrust* trust);
    /// Takes an idle connection over.
    void serve(std::weak_ptr<ConnectionUser> user);
    /// The answer is complete: waits in `pool` for the next call.
    void rest_in(const std::shared_ptr<ConnectionPool>& pool);

    void send(std::string_view head, std::string&& body, std::vector<SharedText>&& shared_body);
    [[nodiscard]] bool sent_all() const { return output_.empty() && !output_broken_; }
    void set_time(std::chrono::milliseconds limit) { set_deadline(limit); }
    /// Keeps its user alive until the answer is complete.
    void own_user(std::shared_ptr<ConnectionUser> user) { owned_user_ = std::move(user); }
    void drop() noexcept;

private:
    void on_input(std::string_view data) override;
    void on_input_end(const SystemError& error) override;
    void on_output(Output state) override;
    void on_output_error(const SystemError& error) override;
    void on_deadline() override;
    void on_failure() noexcept override;
    void on_loop_end() noexcept override {}
    void on_secured() override;
    void on_not_secured(const SystemError& error) override;
    [[nodiscard]] std::size_t input_room() const override { return SIZE_MAX; }
    void leave_pool();

    const std::string origin_;
    bool output_broken_ = false;
    std::weak_ptr<ConnectionUser> user_;
    std::shared_ptr<ConnectionUser> owned_user_;
    std::weak_ptr<ConnectionPool> pool_;  ///< Where it is idle; empty while it serves a call.
};

}  // namespace sluice::net
