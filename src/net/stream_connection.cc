#include "net/stream_connection.h"

#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace sluice::net {
namespace {

// Whoever takes less than this in the time of a stall is too slow to be waited for.
constexpr std::size_t kProgressBytes = 256 * 1024;

}  // namespace

StreamConnection::StreamConnection(EventLoop::Impl& loop, Options options,
                                   std::function<void()> over)
    : TcpEndpoint(loop, Socket(loop.context)),
      options_(std::move(options)),
      over_(std::move(over)) {}

void StreamConnection::begin(Socket connected, TcpEvents& events) {
    SLUICE_ASSERT(stage_ == Stage::kOpening);
    socket() = std::move(connected);
    events_ = &events;
    set_no_delay();
    keep_alive();
    open();
}

void StreamConnection::begin_secure(Socket connected, TcpEvents& events,
                                    std::unique_ptr<TlsSession> session,
                                    std::chrono::milliseconds time) {
    SLUICE_ASSERT(stage_ == Stage::kOpening);
    socket() = std::move(connected);
    events_ = &events;
    set_no_delay();
    keep_alive();
    set_deadline(time);
    secure(std::move(session));
}

void StreamConnection::on_secured() {
    clear_deadline();
    open();
}

void StreamConnection::on_not_secured(const SystemError& error) {
    break_off({ErrorCode::kUnavailable,
               "no secure connection to " + options_.name + ": " + error.message()});
}

void StreamConnection::open() {
    stage_ = Stage::kOpen;
    if (expected_within_) set_deadline(*expected_within_);
    events_->on_open();
    if (stage_ != Stage::kOpen) return;
    if (!output_.empty()) flush_later();
    watch_input();
}

void StreamConnection::fail(TcpEvents& events, const Error& why) {
    events_ = &events;
    break_off(why);
}

void StreamConnection::write(std::string_view data) {
    if (stage_ > Stage::kOpen) return;
    output_.add(data);
    if (stage_ == Stage::kOpen) flush_later();
}

void StreamConnection::share(SharedText data) {
    if (stage_ > Stage::kOpen) return;
    output_.share(std::move(data));
    if (stage_ == Stage::kOpen) flush_later();
}

void StreamConnection::resume_input() {
    if (!std::exchange(paused_, false) || stage_ != Stage::kOpen) return;
    watch_input();
}

void StreamConnection::expect_within(std::chrono::milliseconds time) {
    expected_within_ = time;
    if (stage_ == Stage::kOpen && !output_waits_) set_deadline(time);
}

void StreamConnection::expect_nothing() {
    expected_within_.reset();
    if (stage_ == Stage::kOpen && !output_waits_) clear_deadline();
}

std::size_t StreamConnection::input_room() const {
    if (input_ended_ || (paused_ && stage_ == Stage::kOpen)) return 0;
    return SIZE_MAX;
}

std::span<char> StreamConnection::input_place() {
    return stage_ == Stage::kOpen ? events_->room() : std::span<char>();
}

void StreamConnection::on_input(std::string_view data) {
    if (stage_ == Stage::kOpen) return events_->on_data(data);
    linger_bytes_ += data.size();
    if (linger_bytes_ > limits::kLingerBytes) cut();
}

void StreamConnection::on_input_end(const SystemError& error) {
    if (stage_ == Stage::kLingering) return end();
    if (error != asio::error::eof) {
        return break_off({ErrorCode::kUnavailable,
                          "the connection to " + options_.name + " broke: " + error.message()});
    }
    input_ended_ = true;
    if (stage_ == Stage::kOpen) events_->on_end_of_input();
}

void StreamConnection::on_output(Output state) {
    if (stage_ == Stage::kLingering) return;
    if (state != Output::kDrained) return watch_stall();
    const bool waited = std::exchange(output_waits_, false);
    if (stage_ == Stage::kFinishing) return linger();
    if (waited) {
        clear_deadline();
        if (expected_within_) set_deadline(*expected_within_);
    }
    if (waited || paused_) events_->on_sent_all();
}

void StreamConnection::watch_stall() {
    const bool goes_on = output_waits_ && output_.bytes() + kProgressBytes > stalled_at_bytes_;
    if (goes_on) return;
    output_waits_ = true;
    stalled_at_bytes_ = output_.bytes();
    set_deadline(options_.write_stall);
}

void StreamConnection::on_output_error(const SystemError& error) {
    break_off({ErrorCode::kUnavailable,
               "the connection to " + options_.name + " broke: " + error.message()});
}

void StreamConnection::on_deadline() {
    if (stage_ == Stage::kOpen && !output_waits_) {
        expected_within_.reset();
        return events_->on_overdue();
    }
    close_with_reset();  // Else the kernel keeps what nobody takes for minutes more.
    break_off({ErrorCode::kTimeout, stage_ == Stage::kOpening
                                        ? "no secure connection to " + options_.name + " in time"
                                        : options_.name + " doesn't read what it asked for"});
}

void StreamConnection::close_when_sent() {
    if (stage_ > Stage::kOpen) return;
    if (stage_ == Stage::kOpening) return cut();
    stage_ = Stage::kFinishing;
    events_ = nullptr;
    if (output_.empty()) return linger();
    if (!output_waits_) set_deadline(options_.write_stall);
    flush_later();
}

void StreamConnection::linger() {
    if (input_ended_) return end();
    // Closing on unread input resets the connection, and the reset may overtake what was sent.
    stage_ = Stage::kLingering;
    shut_down_output();
    set_deadline(std::chrono::seconds(limits::kLingerSeconds));
    watch_input();
}

void StreamConnection::break_off(Error why) noexcept {
    TcpEvents* const events = std::exchange(events_, nullptr);
    EventLoop::Impl* const home = loop();
    end();
    if (events != nullptr && home != nullptr) home->guarded([&] { events->on_broken(why); });
}

void StreamConnection::cut() noexcept {
    if (stage_ == Stage::kOver) return;
    events_ = nullptr;
    if (stage_ != Stage::kOpening) close_with_reset();
    end();
}

void StreamConnection::end() noexcept {
    if (std::exchange(stage_, Stage::kOver) == Stage::kOver) return;
    events_ = nullptr;
    close();
    const auto over = std::exchange(over_, nullptr);
    if (over) over();
}

void StreamConnection::on_failure() noexcept {
    break_off({ErrorCode::kInternal, "what came from " + options_.name + " could not be handled"});
}

void StreamConnection::on_loop_end() noexcept {
    stage_ = Stage::kOver;
    events_ = nullptr;
    const auto dropped = std::exchange(over_, nullptr);
}

}  // namespace sluice::net
