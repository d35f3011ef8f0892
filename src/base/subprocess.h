#pragma once

// A child process that never outlives its owner.
//
// Three nets, for three ways to go: the destructor kills and reaps; the kernel kills the child when
// the parent dies, by SIGKILL too (parent-death signal); and a child whose parent died before that
// signal was armed sees it and leaves before it runs anything.
//
// The kernel ties the parent-death signal to the *thread* that spawned. Spawn from a thread that lives
// as long as the child should: the main thread, or the event loop's.
//
// The child gets exactly the descriptors named here, an empty signal mask, and default handlers.
//
// Threads: one at a time per object; `spawn` from any.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sluice {

struct ExitStatus {
    enum class Kind { kExited, kSignalled };
    Kind kind = Kind::kExited;
    int value = 0;  ///< Exit code or signal number.

    [[nodiscard]] bool ok() const { return kind == Kind::kExited && value == 0; }
    /// "exit code 3", "killed by signal 9 (Killed)"
    [[nodiscard]] std::string describe() const;
    bool operator==(const ExitStatus&) const = default;
};

/// The child's descriptor `child` is the parent's `parent`.
struct InheritedFd {
    int parent;
    int child;
};

enum class ParentDeath { kKillsChild, kSparesChild };
enum class Session {
    kShared,    ///< Ctrl-C in the terminal reaches parent and child alike.
    kOwnGroup,  ///< Only the parent hears the terminal; it stops the child in its own time.
    kDetached,  ///< A session of its own: closing the terminal changes nothing.
};

struct SpawnOptions {
    std::vector<std::string> argv{};  ///< argv[0] is looked up in PATH if it has no slash.
    std::optional<std::vector<std::string>>
        environment{};                             ///< "NAME=value"; nullopt: the parent's.
    std::vector<std::string> extra_environment{};  ///< Added, or replacing by name.
    std::vector<InheritedFd> fds{};  ///< 0, 1, 2 not named here: null, the parent's, the parent's.
    ParentDeath parent_death = ParentDeath::kKillsChild;
    Session session = Session::kOwnGroup;
};

class Subprocess {
public:
    /// Error `kIo`, naming the program, if it can't be executed.
    [[nodiscard]] static Result<Subprocess> spawn(const SpawnOptions& options);

    Subprocess(Subprocess&&) noexcept = default;
    Subprocess& operator=(Subprocess&& other) noexcept;
    ~Subprocess();

    [[nodiscard]] pid_t pid() const { return pid_; }

    /// Readable once the child has ended; for an event loop. Stays this object's.
    [[nodiscard]] int pidfd() const { return pidfd_.get(); }

    /// Sends a signal; nothing happens if the child has ended.
    void signal(int number) const;

    /// How the child ended, or nullopt while it runs. Never blocks; the answer stays the same.
    [[nodiscard]] std::optional<ExitStatus> poll();

    /// Waits at most `timeout` for the child's end.
    [[nodiscard]] std::optional<ExitStatus> wait(std::chrono::milliseconds timeout);

    /// SIGTERM, then SIGKILL after `grace`; returns how it ended.
    ExitStatus stop(std::chrono::milliseconds grace);

    /// Lets the child live on without its owner (use with ParentDeath::kSparesChild).
    void release() { pidfd_.reset(); }

private:
    Subprocess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
    void kill_and_reap();

    pid_t pid_ = -1;
    UniqueFd pidfd_;  ///< Empty once moved from or released.
    std::optional<ExitStatus> ended_;
};

/// A pipe whose both ends are closed on exec.
struct Pipe {
    UniqueFd read;
    UniqueFd write;
};
[[nodiscard]] Result<Pipe> make_pipe();

}  // namespace sluice
