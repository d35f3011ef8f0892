#include "net/tcp_client.h"

#include <utility>

#include "base/assert.h"
#include "net/connection_stream.h"
#include "net/dialer.h"
#include "net/tls_session.h"

namespace sluice::net {
namespace {

std::string name_of(const TcpTarget& target) {
    const std::string port = ":" + std::to_string(target.port);
    return target.host.contains(':') ? "[" + target.host + "]" + port : target.host + port;
}

class ClientStream final : public ConnectionStream {
public:
    ClientStream(EventLoop::Impl& loop, TcpTarget target, TcpEvents& events)
        : ConnectionStream(loop, {.name = name_of(target), .write_stall = target.write_stall},
                           nullptr) {
        const Clock::time_point deadline =
            Clock::now() +
            std::min<std::chrono::milliseconds>(target.connect_time, std::chrono::hours(24));
        const Dialer::Target address{
            .host = target.host, .port = target.port, .name = name_of(target)};
        const auto time = target.connect_time;
        dialer_ = std::make_shared<Dialer>(
            loop, address, time,
            // The dialer is silenced with this stream, and the connection with it.
            [connection = connection(), target = std::move(target), deadline,
             &events](Result<Socket> socket) {
                dialed(*connection, target, deadline, events, std::move(socket));
            });
        dialer_->start();
    }

    ~ClientStream() override { dialer_->cancel(); }

    void close_when_sent() override {
        dialer_->cancel();
        ConnectionStream::close_when_sent();
    }
    void cut() override {
        dialer_->cancel();
        ConnectionStream::cut();
    }

private:
    static void dialed(StreamConnection& connection, const TcpTarget& target,
                       Clock::time_point deadline, TcpEvents& events, Result<Socket> socket) {
        if (!socket) return connection.fail(events, socket.error());
        if (target.trust == nullptr) return connection.begin(*std::move(socket), events);
        auto session = target.trust->open(socket->native_handle(), target.host);
        connection.begin_secure(
            *std::move(socket), events, std::move(session),
            std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()));
    }

    std::shared_ptr<Dialer> dialer_;
};

}  // namespace

std::unique_ptr<TcpStream> connect_tcp(EventLoop& loop, TcpTarget target, TcpEvents& events) {
    SLUICE_ASSERT(loop.in_loop_thread());
    return std::make_unique<ClientStream>(loop.impl(), std::move(target), events);
}

}  // namespace sluice::net
