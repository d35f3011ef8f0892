#include "app/supervisor_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "app/command.h"

namespace sluice::app {

Result<StopSignals> StopSignals::take() {
    sigset_t set;
    sigset_t before;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, &before);
    UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return std::unexpected(Error::io("signalfd", errno));
    return StopSignals(std::move(fd), before);
}

StopSignals::~StopSignals() {
    if (fd_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> StopSignals::next() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
}

int exit_code_for(int signal) { return signal == SIGINT ? kInterrupted : kDone; }

}  // namespace sluice::app
