#pragma once

// A file descriptor that closes itself: exactly once, at the end of its owner's life.

#include <unistd.h>

#include <utility>

namespace sluice {

class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

    /// Gives the descriptor away; the caller closes it.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

    void reset(int fd = -1) {
        const int old = std::exchange(fd_, fd);
        // After EINTR Linux has closed the descriptor; a second try could close somebody else's.
        if (old >= 0) ::close(old);
    }

private:
    int fd_ = -1;
};

}  // namespace sluice
