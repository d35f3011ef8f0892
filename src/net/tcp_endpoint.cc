#include "net/tcp_endpoint.h"

#include <algorithm>
#include <array>
#include <span>

namespace sluice::net {
namespace {

// How much one connection may read and write before others get their turn.
constexpr int kReadsATurn = 4;
constexpr std::size_t kGatheredPieces = 16;

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

void TcpEndpoint::watch_input() {
    if (watching_input_ || !is_open() || input_room() == 0) return;
    watching_input_ = true;
    socket_->async_wait(Socket::wait_read, [self = shared_from_this()](const SystemError& error) {
        self->readable(error);
    });
}

void TcpEndpoint::readable(const SystemError& error) {
    if (!is_open()) return;
    const Turn turn(*loop());
    contained([&] {
        watching_input_ = false;
        if (error) return on_input_end(error);
        read_available();
        watch_input();
    });
}

void TcpEndpoint::read_available() {
    std::vector<char>& scratch = loop()->scratch;
    for (int round = 0; round < kReadsATurn && is_open(); ++round) {
        const std::size_t room = std::min(input_room(), scratch.size());
        if (room == 0) return;
        SystemError error;
        const std::size_t count = socket_->read_some(asio::buffer(scratch.data(), room), error);
        if (would_block(error)) return;
        if (error) return on_input_end(error);
        on_input({scratch.data(), count});
        if (count < room) return;
    }
}

void TcpEndpoint::flush_later() {
    if (flush_pending_ || watching_output_ || !is_open()) return;
    flush_pending_ = true;
    loop()->at_end_of_turn(std::shared_ptr<TurnEnd>(shared_from_this(), this));
}

void TcpEndpoint::end_of_turn() noexcept {
    flush_pending_ = false;
    contained([&] { flush(); });
}

void TcpEndpoint::flush() {
    if (!is_open() || watching_output_) return;
    bool progress = false;
    while (!output_.empty()) {
        std::array<std::string_view, kGatheredPieces> pieces;
        const std::size_t count = output_.front(pieces);
        std::array<asio::const_buffer, kGatheredPieces> buffers;
        std::ranges::transform(
            std::span(pieces).first(count), buffers.begin(),
            [](std::string_view piece) { return asio::buffer(piece.data(), piece.size()); });
        SystemError error;
        const std::size_t written =
            count == 1 ? socket_->write_some(buffers[0], error)
                       : socket_->write_some(std::span(buffers).first(count), error);
        if (would_block(error)) {
            watch_output();
            return on_output(progress ? Output::kProgress : Output::kBlocked);
        }
        if (error) return on_output_error(error);
        output_.drop(written);
        progress = true;
    }
    on_output(Output::kDrained);
}

void TcpEndpoint::watch_output() {
    watching_output_ = true;
    socket_->async_wait(Socket::wait_write, [self = shared_from_this()](const SystemError& error) {
        if (!self->is_open()) return;
        const Turn turn(*self->loop());
        self->contained([&] {
            self->watching_output_ = false;
            if (error) return self->on_output_error(error);
            self->flush();
        });
    });
}

void TcpEndpoint::shut_down_output() {
    SystemError ignored;
    if (is_open()) socket_->shutdown(Socket::shutdown_send, ignored);
}

void TcpEndpoint::close() noexcept {
    socket_.reset();
    timer_.reset();
    deadline_ = kNever;
    output_.clear();
}

void TcpEndpoint::close_with_reset() noexcept {
    SystemError ignored;
    if (is_open()) {
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
