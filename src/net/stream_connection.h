#pragma once

// What stands behind a TcpStream, of a server or a client.
//
// Private to net/.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/tcp_endpoint.h"
#include "net/tcp_stream.h"
#include "net/tls.h"

namespace sluice::net {

class StreamConnection final : public TcpEndpoint {
public:
    struct Options {
        std::string name;  ///< Of the other side, for errors.
        /// The other side must take a certain amount in this time, or is cut.
        std::chrono::milliseconds write_stall;
    };

    /// `over` is called once, when the connection ends in whatever way.
    StreamConnection(EventLoop::Impl& loop, Options options, std::function<void()> over);

    /// Goes to work on a connected socket. `events` outlives this, or is let go of by `silence`.
    void begin(Socket socket, TcpEvents& events);
    /// The same after a handshake, which has so much time.
    void begin_secure(Socket socket, TcpEvents& events, std::unique_ptr<TlsSession> session,
                      std::chrono::milliseconds time);
    /// There will be no connection.
    void fail(TcpEvents& events, const Error& why);

    void write(std::string_view data);
    void share(SharedText data);
    [[nodiscard]] std::size_t backlog_bytes() const { return output_.bytes(); }
    void pause_input() { paused_ = true; }
    void resume_input();
    void expect_within(std::chrono::milliseconds time);
    void expect_nothing();
    void close_when_sent();
    void cut() noexcept;

private:
    enum class Stage : std::uint8_t {
        kOpening,  ///< Not connected, or not secured.
        kOpen,
        kFinishing,  ///< Nobody listens any more; what is left is sent.
        kLingering,  ///< Waits for the other side to have read it.
        kOver,
    };

    void on_input(std::string_view data) override;
    void on_input_end(const SystemError& error) override;
    void on_output(Output state) override;
    void on_output_error(const SystemError& error) override;
    void on_deadline() override;
    void on_failure() noexcept override;
    void on_loop_end() noexcept override;
    void on_secured() override;
    void on_not_secured(const SystemError& error) override;
    [[nodiscard]] std::size_t input_room() const override;
    [[nodiscard]] std::span<char> input_place() override;

    void open();
    void watch_stall();
    void linger();
    /// Tells why, once, and is over.
    void break_off(Error why) noexcept;
    void end() noexcept;

    const Options options_;
    std::function<void()> over_;
    TcpEvents* events_ = nullptr;
    Stage stage_ = Stage::kOpening;
    bool paused_ = false;
    bool input_ended_ = false;
    bool output_waits_ = false;
    std::size_t stalled_at_bytes_ = 0;  ///< The backlog when the present stall began.
    std::size_t linger_bytes_ = 0;
    std::optional<std::chrono::milliseconds> expected_within_;
};

}  // namespace sluice::net
