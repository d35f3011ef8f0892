#include "net/tcp_endpoint.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace sluice::net {
namespace {

// How much one connection may read and write before others get their turn.
constexpr int kReadsATurn = 4;
constexpr std::size_t kGatheredPieces = 16;
// A peer that is silent for a minute is asked, and missed after two.
constexpr std::array<std::pair<int, int>, 3> kKeepAlive{
    {{TCP_KEEPIDLE, 60}, {TCP_KEEPINTVL, 15}, {TCP_KEEPCNT, 4}}};

bool would_block(const SystemError& error) {
    return error == asio::error::would_block || error == asio::error::try_again;
}

}  // namespace

TcpEndpoint::TcpEndpoint(EventLoop::Impl& loop, Socket socket)
    : LoopMember(loop), socket_(std::move(socket)) {}

void TcpEndpoint::loop_ends() noexcept {
    close();
    on_loop_end();
}

void TcpEndpoint::set_no_delay() {
    SystemError ignored;
    socket_->non_blocking(true, ignored);
    socket_->set_option(Tcp::no_delay(true), ignored);
}

void TcpEndpoint::keep_alive() {
    SystemError ignored;
    socket_->set_option(asio::socket_base::keep_alive(true), ignored);
    const int fd = socket_->native_handle();
    for (const auto& [option, value] : kKeepAlive)
        setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

void TcpEndpoint::secure(std::unique_ptr<TlsSession> session) {
    tls_ = std::move(session);
    handshaking_ = true;
    shake_hands();
}

void TcpEndpoint::shake_hands() {
    const TlsSession::Step step = tls_->handshake();
    if (step.error) return on_not_secured(step.error);
    if (step.wait == TlsSession::Wait::kReadable) return watch_input();
    if (step.wait == TlsSession::Wait::kWritable) return watch_output();
    handshaking_ = false;
    on_secured();
    flush();
    watch_input();
}

void TcpEndpoint::watch_input() {
    if (watching_input_ || !is_open() || input_room() == 0) return;
    watching_input_ = true;
    if (tls_ && !handshaking_ && tls_->holds_input()) {
        return loop()->post([self = shared_from_this()] { self->readable({}); });
    }
    socket_->async_wait(Socket::wait_read, [self = shared_from_this()](const SystemError& error) {
        self->readable(error);
    });
}

void TcpEndpoint::readable(const SystemError& error) {
    if (!is_open()) return;
    const Turn turn(*loop());
    contained([&] {
        watching_input_ = false;
        if (handshaking_) return error ? on_not_secured(error) : shake_hands();
        if (error) return on_input_end(error);
        if (std::exchange(write_waits_for_input_, false)) flush();
        read_available();
        watch_input();
    });
}

TlsSession::Step TcpEndpoint::read_some(std::span<char> place) {
    if (tls_) return tls_->read(place.data(), place.size());
    TlsSession::Step step;
    step.bytes = socket_->read_some(asio::buffer(place.data(), place.size()), step.error);
    if (!would_block(step.error)) return step;
    return {.wait = TlsSession::Wait::kReadable};
}

void TcpEndpoint::read_available() {
    for (int round = 0; round < kReadsATurn && is_open(); ++round) {
        std::span<char> place = input_place();
        if (place.empty()) place = loop()->scratch;
        place = place.first(std::min(input_room(), place.size()));
        if (place.empty()) return;
        const TlsSession::Step step = read_some(place);
        if (step.wait == TlsSession::Wait::kWritable) {
            read_waits_for_output_ = true;
            return watch_output();
        }
        if (step.wait == TlsSession::Wait::kReadable) return;
        if (step.error) return on_input_end(step.error);
        on_input({place.data(), step.bytes});
        // A record of TLS may be short with more behind it; a plain socket that gave less is empty.
        if (!tls_ && step.bytes < place.size()) return;
    }
}

void TcpEndpoint::flush_later() {
    if (flush_pending_ || watching_output_ || !is_open()) return;
    flush_pending_ = true;
    loop()->at_end_of_pass(std::shared_ptr<PassEnd>(shared_from_this(), this));
}

void TcpEndpoint::end_of_pass() noexcept {
    flush_pending_ = false;
    contained([&] { flush(); });
}

TlsSession::Step TcpEndpoint::write_some() {
    std::array<std::string_view, kGatheredPieces> pieces;
    const std::size_t count = output_.front(tls_ ? std::span(pieces).first(1) : pieces);
    if (tls_) return tls_->write(pieces[0]);
    std::array<asio::const_buffer, kGatheredPieces> buffers;
    std::ranges::transform(
        std::span(pieces).first(count), buffers.begin(),
        [](std::string_view piece) { return asio::buffer(piece.data(), piece.size()); });
    TlsSession::Step step;
    step.bytes = count == 1 ? socket_->write_some(buffers[0], step.error)
                            : socket_->write_some(std::span(buffers).first(count), step.error);
    if (!would_block(step.error)) return step;
    return {.wait = TlsSession::Wait::kWritable};
}

void TcpEndpoint::flush() {
    if (!is_open() || watching_output_ || handshaking_ || write_waits_for_input_) return;
    bool progress = false;
    while (!output_.empty()) {
        const TlsSession::Step step = write_some();
        if (step.wait != TlsSession::Wait::kNone) {
            if (step.wait == TlsSession::Wait::kWritable) {
                watch_output();
            } else {
                write_waits_for_input_ = true;
                watch_input();
            }
            return on_output(progress ? Output::kProgress : Output::kBlocked);
        }
        if (step.error) return on_output_error(step.error);
        output_.drop(step.bytes);
        progress = true;
    }
    on_output(Output::kDrained);
}

void TcpEndpoint::watch_output() {
    if (std::exchange(watching_output_, true)) return;
    socket_->async_wait(Socket::wait_write, [self = shared_from_this()](const SystemError& error) {
        self->writable(error);
    });
}

void TcpEndpoint::writable(const SystemError& error) {
    if (!is_open()) return;
    const Turn turn(*loop());
    contained([&] {
        watching_output_ = false;
        if (handshaking_) return error ? on_not_secured(error) : shake_hands();
        if (error) return on_output_error(error);
        flush();
        if (!std::exchange(read_waits_for_output_, false)) return;
        read_available();
        watch_input();
    });
}

void TcpEndpoint::shut_down_output() {
    SystemError ignored;
    if (tls_) tls_->say_goodbye();
    if (is_open()) socket_->shutdown(Socket::shutdown_send, ignored);
}

void TcpEndpoint::close() noexcept {
    // With output left, the goodbye would claim that all of it was sent.
    if (tls_ && is_open() && output_.empty()) tls_->say_goodbye();
    tls_.reset();
    socket_.reset();
    timer_.reset();
    deadline_ = kNever;
    output_.clear();
}

void TcpEndpoint::close_with_reset() noexcept {
    SystemError ignored;
    if (is_open()) {
        tls_.reset();
        socket_->set_option(asio::socket_base::linger(true, 0), ignored);
        socket_->close(ignored);  // Asio's destructor would take the option back.
    }
    close();
}

void TcpEndpoint::set_deadline(std::chrono::milliseconds from_now) {
    if (!is_open()) return;
    const auto now = Clock::now();
    // A year stands for "never", and keeps the clock's arithmetic from overflowing.
    deadline_ = now + std::min<std::chrono::milliseconds>(from_now, std::chrono::hours(24 * 365));
    if (timer_at_ > deadline_) arm_timer();
}

void TcpEndpoint::arm_timer() {
    if (!timer_) timer_.emplace(socket_->get_executor());
    timer_at_ = deadline_;
    timer_->expires_at(deadline_);
    const std::uint64_t generation = ++timer_generation_;
    timer_->async_wait([weak = weak_from_this(), generation](const SystemError& error) {
        if (error) return;
        if (const auto self = weak.lock()) self->timer_fired(generation);
    });
}

void TcpEndpoint::timer_fired(std::uint64_t generation) {
    if (generation != timer_generation_ || !is_open()) return;
    timer_at_ = kNever;
    if (deadline_ == kNever) return;
    if (Clock::now() < deadline_) return arm_timer();
    deadline_ = kNever;
    const Turn turn(*loop());
    contained([&] { on_deadline(); });
}

}  // namespace sluice::net
