#include "app/run_lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "app/run_interrupt.h"

namespace sluice::app {
namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;

}  // namespace

Result<bool> LineReader::fill() {
    if (begin_ > 0) {
        buffer_.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
    }
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kBlockBytes);
    ssize_t count = 0;
    do {
        count = ::read(fd_, buffer_.data() + before, kBlockBytes);
        stopped_ = count < 0 && errno == EINTR && Interrupt::requested();
    } while (count < 0 && errno == EINTR && !stopped_);
    const int why = errno;
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && !stopped_) return std::unexpected(Error::io("cannot read", why));
    return count > 0;
}

Line LineReader::take(std::size_t size, bool complete) {
    Line line{.kind = skipping_ || size > bytes_max_ ? LineKind::kTooLong : LineKind::kLine,
              .text = std::string_view(buffer_).substr(begin_, size),
              .complete = complete};
    if (line.kind == LineKind::kTooLong) line.text = {};
    begin_ += size + (complete ? 1 : 0);
    offset_ += size + (complete ? 1 : 0);
    scanned_ = begin_;
    skipping_ = false;
    return line;
}

Result<Line> LineReader::next() {
    for (;;) {
        const std::size_t newline = buffer_.find('\n', scanned_);
        if (newline != std::string::npos) return take(newline - begin_, true);
        scanned_ = buffer_.size();
        if (scanned_ - begin_ > bytes_max_) {
            offset_ += scanned_ - begin_;
            begin_ = scanned_;
            skipping_ = true;
        }
        const auto more = fill();
        if (!more) return std::unexpected(more.error());
        if (stopped_) return Line{.kind = LineKind::kStopped};
        if (*more) continue;
        if (begin_ == buffer_.size() && !skipping_) return Line{};
        return take(buffer_.size() - begin_, false);
    }
}

bool LineReader::ready() const {
    if (buffer_.find('\n', scanned_) != std::string::npos) return true;
    pollfd waiting{.fd = fd_, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 0) != 0;
}

}  // namespace sluice::app
