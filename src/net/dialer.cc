#include "net/dialer.h"

#include <algorithm>
#include <utility>

#include "net/ascii.h"

namespace sluice::net {
namespace {

std::vector<Tcp::endpoint> known_endpoints(const Dialer::Target& target) {
    if (equals_ignoring_case(target.host, "localhost")) {
        return {{asio::ip::address_v4::loopback(), target.port},
                {asio::ip::address_v6::loopback(), target.port}};
    }
    SystemError error;
    const auto address = asio::ip::make_address(target.host, error);
    if (error) return {};
    return {{address, target.port}};
}

}  // namespace

Dialer::Dialer(EventLoop::Impl& loop, Target target, std::chrono::milliseconds time, Done done)
    : LoopMember(loop), target_(std::move(target)), time_(time), done_(std::move(done)) {}

/// Runs `work` in a turn, if anybody still waits for the connection.
template <class Work>
void Dialer::when_waiting(const std::weak_ptr<Dialer>& weak, Work work) {
    const auto self = weak.lock();
    if (self == nullptr || !self->done_ || self->loop() == nullptr) return;
    EventLoop::Impl& home = *self->loop();
    const Turn turn(home);
    home.guarded([&] { work(*self); });
}

void Dialer::start() {
    start_timer();
    endpoints_ = known_endpoints(target_);
    if (endpoints_.empty()) return resolve();
    try_next();
}

void Dialer::cancel() noexcept {
    timer_.reset();
    resolver_.reset();
    socket_.reset();
    const Done dropped = std::exchange(done_, nullptr);
}

void Dialer::start_timer() {
    timer_.emplace(loop()->context);
    timer_->expires_after(std::min<std::chrono::milliseconds>(time_, std::chrono::hours(24)));
    timer_->async_wait([weak = weak_from_this()](const SystemError& error) {
        if (error) return;
        when_waiting(weak, [](Dialer& self) {
            self.finish(std::unexpected(
                Error(ErrorCode::kTimeout, "no connection to " + self.target_.name + " within " +
                                               std::to_string(self.time_.count()) + " ms")));
        });
    });
}

void Dialer::resolve() {
    resolver_.emplace(loop()->context.get_executor());
    resolver_->async_resolve(
        target_.host, std::to_string(target_.port), Resolver::numeric_service,
        [weak = weak_from_this()](const SystemError& error, const auto& results) {
            when_waiting(weak, [&](Dialer& self) { self.resolved(error, results); });
        });
}

void Dialer::resolved(const SystemError& error, const Resolver::results_type& results) {
    if (error) {
        return finish(std::unexpected(
            Error(ErrorCode::kUnavailable,
                  "the host " + target_.host + " was not found: " + error.message())));
    }
    for (const auto& result : results) endpoints_.push_back(result.endpoint());
    try_next();
}

void Dialer::try_next() {
    socket_.emplace(loop()->context);
    socket_->async_connect(endpoints_[next_++],
                           [weak = weak_from_this()](const SystemError& error) {
                               when_waiting(weak, [&](Dialer& self) { self.tried(error); });
                           });
}

void Dialer::tried(const SystemError& error) {
    if (!error) return finish(*std::exchange(socket_, std::nullopt));
    if (next_ < endpoints_.size()) return try_next();
    finish(std::unexpected(Error(ErrorCode::kUnavailable,
                                 "no connection to " + target_.name + ": " + error.message())));
}

void Dialer::finish(Result<Socket> result) {
    const Done done = std::exchange(done_, nullptr);
    cancel();
    done(std::move(result));
}

}  // namespace sluice::net
