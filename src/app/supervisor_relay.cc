#include "app/supervisor_relay.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/limits.h"

namespace sluice::app {
namespace {

constexpr int kLastWaitMilliseconds = 500;

bool writable(int fd, int wait_milliseconds) {
    pollfd poll{.fd = fd, .events = POLLOUT, .revents = 0};
    return ::poll(&poll, 1, wait_milliseconds) == 1;
}

}  // namespace

void LineRelay::add(std::string_view line) {
    if (backlog_.size() + line.size() > limits::kChildBacklogBytes) {
        ++dropped_;
        return;
    }
    if (dropped_ > 0) backlog_ += fmt::format("({} lines dropped, nobody read them)\n", dropped_);
    dropped_ = 0;
    backlog_ += line;
    backlog_ += '\n';
}

bool LineRelay::idle() const { return !pending() && writable(fd_, 0); }

void LineRelay::flush() {
    std::size_t done = 0;
    while (done < backlog_.size() && writable(fd_, 0)) {
        // A pipe that is writable takes this much without waiting, pipe(7).
        const std::size_t piece = std::min<std::size_t>(backlog_.size() - done, PIPE_BUF);
        const ssize_t count = ::write(fd_, backlog_.data() + done, piece);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) break;
        done = count < 0 ? backlog_.size() : done + static_cast<std::size_t>(count);
    }
    backlog_.erase(0, done);
}

void LineRelay::finish() {
    flush();
    while (pending() && writable(fd_, kLastWaitMilliseconds)) flush();
}

}  // namespace sluice::app
