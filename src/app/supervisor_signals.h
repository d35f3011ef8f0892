#pragma once

// SIGINT, SIGTERM and SIGHUP as a readable descriptor, for as long as this lives. A signal that is
// ignored on entry (a shell's background job, nohup) stays ignored.
//
// Make it before the process has other threads: they inherit the mask.

#include <csignal>
#include <optional>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sluice::app {

class StopSignals {
public:
    [[nodiscard]] static Result<StopSignals> take();

    StopSignals(StopSignals&&) noexcept = default;
    StopSignals& operator=(StopSignals&&) = delete;
    /// The signals do again what they did; one that waits unread does it now.
    ~StopSignals();

    [[nodiscard]] int fd() const { return fd_.get(); }
    /// The next signal that came; nullopt if there is none. Never blocks.
    [[nodiscard]] std::optional<int> next() const;

private:
    StopSignals(UniqueFd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

    UniqueFd fd_;
    sigset_t before_;
};

/// 130 for SIGINT, else 0: who asks a service to stop gets what they asked for.
[[nodiscard]] int exit_code_for(int signal);

}  // namespace sluice::app
