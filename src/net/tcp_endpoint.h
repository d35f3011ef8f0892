#pragma once

// One TCP connection, as server and client both need it: input is read to the loop's common buffer
// when it is there, output leaves at the end of the pass in one gathered write, one deadline guards
// whatever is being waited for. `secure` puts TLS between this and the socket; nothing else changes.
//
// An endpoint is open until `close`; a closed one does nothing and calls nothing. An exception that
// escapes from one of the `on_` functions ends this connection only.
//
// Private to net/.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/loop_impl.h"
#include "net/output_queue.h"
#include "net/tls_session.h"

namespace sluice::net {

class TcpEndpoint : public LoopMember,
                    public PassEnd,
                    public std::enable_shared_from_this<TcpEndpoint> {
public:
    [[nodiscard]] bool is_open() const { return socket_.has_value(); }

protected:
    enum class Output : std::uint8_t {
        kDrained,   ///< The kernel has everything.
        kProgress,  ///< It took some and is full.
        kBlocked,   ///< It is full and took nothing.
    };

    TcpEndpoint(EventLoop::Impl& loop, Socket socket);

    virtual void on_input(std::string_view data) = 0;
    /// The other side sends no more (`error` is eof) or the connection is broken.
    virtual void on_input_end(const SystemError& error) = 0;
    virtual void on_output(Output state) = 0;
    virtual void on_output_error(const SystemError& error) = 0;
    virtual void on_deadline() = 0;
    /// An `on_` function threw: close, and tell whoever must know.
    virtual void on_failure() noexcept = 0;
    /// The loop is gone, and the socket with it: let go of callbacks, call nobody.
    virtual void on_loop_end() noexcept = 0;
    /// After `secure`: the handshake is done, or it failed and the connection is of no use.
    virtual void on_secured() {}
    virtual void on_not_secured(const SystemError& /*error*/) {}
    /// How many bytes may be read now; at 0 reading pauses until `watch_input` is called.
    [[nodiscard]] virtual std::size_t input_room() const = 0;
    /// Where the next bytes are to be read to; if empty, to the loop's common buffer.
    [[nodiscard]] virtual std::span<char> input_place() { return {}; }

    void set_no_delay();
    /// So that a peer is missed that has gone without a word.
    void keep_alive();
    /// Begins the handshake. What is added to `output` meanwhile leaves after it.
    void secure(std::unique_ptr<TlsSession> session);
    /// Reads when there is something. To be called again when `input_room` was 0 and is no more.
    void watch_input();
    /// What was added to `output` leaves at the end of this pass.
    void flush_later();
    /// Hands the kernel what it takes, and reports by `on_output` or `on_output_error`.
    void flush();
    void shut_down_output();
    void close() noexcept;
    /// So that the other side sees a reset instead of an orderly end.
    void close_with_reset() noexcept;

    void set_deadline(std::chrono::milliseconds from_now);
    void clear_deadline() { deadline_ = kNever; }

    [[nodiscard]] Socket& socket() { return *socket_; }
    OutputQueue output_;

    /// Runs `work`; if it throws, `on_failure` follows.
    template <class Work>
    void contained(Work&& work) noexcept;

private:
    static constexpr Clock::time_point kNever = Clock::time_point::max();

    void loop_ends() noexcept final;
    void end_of_pass() noexcept final;
    void readable(const SystemError& error);
    void read_available();
    [[nodiscard]] TlsSession::Step read_some(std::span<char> place);
    [[nodiscard]] TlsSession::Step write_some();
    void watch_output();
    void writable(const SystemError& error);
    void shake_hands();
    void arm_timer();
    void timer_fired(std::uint64_t generation);

    std::optional<Socket> socket_;
    std::unique_ptr<TlsSession> tls_;
    std::optional<SteadyTimer> timer_;
    // The timer is armed lazily: it may fire before `deadline_`, and is then armed again. Moving a
    // deadline back, which every piece of data does, is a store.
    Clock::time_point deadline_ = kNever;
    Clock::time_point timer_at_ = kNever;
    std::uint64_t timer_generation_ = 0;
    bool watching_input_ = false;
    bool watching_output_ = false;
    bool flush_pending_ = false;
    bool handshaking_ = false;
    // TLS may have to write in order to read, and the other way round.
    bool read_waits_for_output_ = false;
    bool write_waits_for_input_ = false;
};

template <class Work>
void TcpEndpoint::contained(Work&& work) noexcept {
    try {
        std::forward<Work>(work)();
        return;
    } catch (const std::exception& error) {
        EventLoop::Impl::report(error.what());
    } catch (...) {
        EventLoop::Impl::report("an unknown exception");
    }
    on_failure();
}

}  // namespace sluice::net
