#include "base/subprocess.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/assert.h"

extern char** environ;

namespace sluice {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

std::string_view variable_name(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> child_environment(const SpawnOptions& options) {
    std::vector<std::string> entries;
    if (options.environment) {
        entries = *options.environment;
    } else {
        for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
    }
    for (const std::string& extra : options.extra_environment) {
        std::erase_if(entries, [&](const std::string& entry) {
            return variable_name(entry) == variable_name(extra);
        });
        entries.push_back(extra);
    }
    return entries;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> list;
    list.reserve(texts.size() + 1);
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
}

/// The program as execve wants it; a name without a slash is looked up in PATH.
std::string find_program(const std::string& name) {
    const char* const path = std::getenv("PATH");
    if (name.find('/') != std::string::npos || path == nullptr) return name;
    std::string_view rest = path;
    while (!rest.empty()) {
        const std::size_t colon = rest.find(':');
        const std::string candidate = fmt::format("{}/{}", rest.substr(0, colon), name);
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
        rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    }
    return name;
}

/// All that the child needs, prepared before the fork: after it, in a process of several threads,
/// only async-signal-safe calls are allowed, so no allocation.
struct Plan {
    const char* program;
    char* const* argv;
    char* const* environment;
    std::vector<InheritedFd> fds{};  ///< `parent` becomes a copy above all targets on the way.
    int first_free = 3;              ///< Above every target.
    pid_t parent;
    ParentDeath parent_death;
    Session session;
    int report;  ///< Gets errno if exec fails; closed by exec.
};

[[noreturn]] void fail(int report) {
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof error);
    ::_exit(127);
}

void reset_signals() {
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Targets may be sources of others (1 -> 2, 2 -> 1), so all are copied out of the way first.
void place_fds(Plan& plan) {
    plan.report = ::fcntl(plan.report, F_DUPFD_CLOEXEC, plan.first_free);
    if (plan.report < 0) ::_exit(127);
    for (InheritedFd& fd : plan.fds) {
        fd.parent = ::fcntl(fd.parent, F_DUPFD_CLOEXEC, plan.first_free);
        if (fd.parent < 0) fail(plan.report);
    }
    // Whatever the parent forgot to mark is not the child's either.
    if (::syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) != 0) {
        for (int fd = 3; fd < 4096; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    for (const InheritedFd& fd : plan.fds) {
        if (::dup2(fd.parent, fd.child) < 0) fail(plan.report);
    }
}

[[noreturn]] void run_child(Plan& plan) {
    if (plan.parent_death == ParentDeath::kKillsChild) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        // The parent may have died before the line above; then nobody would send the signal.
        if (::getppid() != plan.parent) ::_exit(127);
    }
    if (plan.session == Session::kOwnGroup) ::setpgid(0, 0);
    if (plan.session == Session::kDetached) ::setsid();
    place_fds(plan);
    reset_signals();
    ::execve(plan.program, plan.argv, plan.environment);
    fail(plan.report);
}

/// Forks with all signals blocked, so that none of the parent's handlers runs in the child.
pid_t fork_child(Plan& plan) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = ::fork();
    if (pid == 0) run_child(plan);
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return pid;
}

/// Errno of a failed exec, or 0 once the pipe closes because exec succeeded.
int read_report(int fd) {
    int error = 0;
    ssize_t count = 0;
    do {
        count = ::read(fd, &error, sizeof error);
    } while (count < 0 && errno == EINTR);
    return count == sizeof error ? error : 0;
}

void reap(pid_t pid) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace

std::string ExitStatus::describe() const {
    if (kind == Kind::kExited) return fmt::format("exit code {}", value);
    const char* const name = ::sigdescr_np(value);
    return fmt::format("killed by signal {} ({})", value, name == nullptr ? "unknown" : name);
}

Result<Pipe> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return std::unexpected(Error::io("cannot make a pipe", errno));
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<Subprocess> Subprocess::spawn(const SpawnOptions& options) {
    SLUICE_ASSERT(!options.argv.empty());
    Result<Pipe> report = make_pipe();
    if (!report) return std::unexpected(report.error());
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));

    const std::string program = find_program(options.argv.front());
    const std::vector<std::string> environment = child_environment(options);
    const std::vector<char*> argv = pointers(options.argv);
    const std::vector<char*> envp = pointers(environment);
    Plan plan{.program = program.c_str(),
              .argv = argv.data(),
              .environment = envp.data(),
              .fds = options.fds,
              .parent = ::getpid(),
              .parent_death = options.parent_death,
              .session = options.session,
              .report = report->write.get()};
    const auto named = [&](int child) {
        return std::any_of(plan.fds.begin(), plan.fds.end(),
                           [&](const InheritedFd& fd) { return fd.child == child; });
    };
    if (!named(0)) plan.fds.push_back({null.get(), 0});
    for (const InheritedFd& fd : plan.fds)
        plan.first_free = std::max(plan.first_free, fd.child + 1);

    const pid_t pid = fork_child(plan);
    if (pid < 0) return std::unexpected(Error::io("cannot fork", errno, options.argv.front()));
    report->write.reset();
    if (const int error = read_report(report->read.get()); error != 0) {
        reap(pid);
        return std::unexpected(Error::io("cannot start the program", error, options.argv.front()));
    }
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
    if (!pidfd) {
        const Error error = Error::io("pidfd_open", errno, options.argv.front());
        ::kill(pid, SIGKILL);
        reap(pid);
        return std::unexpected(error);
    }
    return Subprocess(pid, std::move(pidfd));
}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
    if (this != &other) {
        kill_and_reap();
        pid_ = other.pid_;
        pidfd_ = std::move(other.pidfd_);
        ended_ = other.ended_;
    }
    return *this;
}

Subprocess::~Subprocess() { kill_and_reap(); }

void Subprocess::kill_and_reap() {
    if (!pidfd_ || ended_) return;
    signal(SIGKILL);
    reap(pid_);
}

void Subprocess::signal(int number) const {
    // Until it is reaped, which only this object does, the number can't be anybody else's.
    if (pidfd_ && !ended_) ::kill(pid_, number);
}

std::optional<ExitStatus> Subprocess::poll() {
    if (ended_ || !pidfd_) return ended_;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    if (WIFSIGNALED(status)) {
        ended_ = ExitStatus{ExitStatus::Kind::kSignalled, WTERMSIG(status)};
    } else {
        ended_ = ExitStatus{ExitStatus::Kind::kExited, WEXITSTATUS(status)};
    }
    return ended_;
}

std::optional<ExitStatus> Subprocess::wait(milliseconds timeout) {
    const auto deadline = Clock::now() + timeout;
    while (!poll() && pidfd_) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        if (left <= milliseconds(0)) break;
        pollfd readable{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
        constexpr milliseconds kLongest(60'000);
        ::poll(&readable, 1, static_cast<int>(std::min(left, kLongest).count()));
    }
    return ended_;
}

ExitStatus Subprocess::stop(milliseconds grace) {
    SLUICE_ASSERT(pidfd_);
    signal(SIGTERM);
    if (const auto ended = wait(grace)) return *ended;
    signal(SIGKILL);
    std::optional<ExitStatus> ended;
    while (!ended) ended = wait(milliseconds(1'000));
    return *ended;
}

}  // namespace sluice
