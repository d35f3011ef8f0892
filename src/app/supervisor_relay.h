#pragma once

// Passes lines on to a descriptor that others own (the terminal, a script's pipe) without ever
// waiting for its reader: a supervisor that waits there neither restarts nor stops anything. What a
// reader leaves unread beyond `limits::kChildBacklogBytes` is dropped and counted.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::app {

class LineRelay {
public:
    /// `fd` stays the caller's.
    explicit LineRelay(int fd) : fd_(fd) {}

    /// `line` without its newline.
    void add(std::string_view line);

    [[nodiscard]] int fd() const { return fd_; }
    /// Whether `flush` is to be called once `fd` is writable.
    [[nodiscard]] bool pending() const { return !backlog_.empty(); }
    /// Whether somebody else may write a line to `fd` now without waiting.
    [[nodiscard]] bool idle() const;
    void flush();
    /// Waits for a slow reader, but not long.
    void finish();

private:
    int fd_;
    std::string backlog_;
    std::uint64_t dropped_ = 0;
};

}  // namespace sluice::app
