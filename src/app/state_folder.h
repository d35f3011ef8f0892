#pragma once

// The folder in which a service keeps what must be found again: its lock, `up.json`, its log. One
// service a folder.
//
// Whether a service runs is known by a lock that the kernel holds for the living process and drops
// with it, however it ends; a file that a killed service left behind means nothing. The lock is a
// POSIX record lock and not flock(2), because the kernel tells who holds such a lock: no pid is ever
// read from a file. It has one trap: closing *any* descriptor of the lock file ends the process's
// lock, so a process opens it once.

#include <sys/types.h>

#include <optional>
#include <string>

#include "app/service_state.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace sluice::app {

class StateFolder {
public:
    /// `chosen`, else `$XDG_STATE_HOME/sluice`, else `~/.local/state/sluice`. Creates nothing.
    /// Error `kNotFound` if no home is known.
    [[nodiscard]] static Result<StateFolder> find(const std::string& chosen);

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string log_path() const { return path_ + "/sluice.log"; }

    /// The process that holds the lock now, asked of the kernel. Not for the holder itself.
    [[nodiscard]] std::optional<pid_t> holder() const;

    /// What the service said when it was ready; an error if it has not said so yet.
    [[nodiscard]] Result<ServiceState> read_state() const;

private:
    friend class StateLock;
    explicit StateFolder(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] std::string lock_path() const { return path_ + "/lock"; }
    [[nodiscard]] std::string state_path() const { return path_ + "/up.json"; }

    std::string path_;
};

/// The right to be the service of a folder. Its end removes `up.json` and the lock.
class StateLock {
public:
    /// Creates the folder (for its owner only) where needed. Error `kUnavailable` if another process
    /// holds the lock, `kIo` if the folder can't be used.
    [[nodiscard]] static Result<StateLock> acquire(const StateFolder& folder);

    StateLock(StateLock&&) noexcept = default;
    StateLock& operator=(StateLock&&) = delete;
    ~StateLock();

    /// Readers see the old file or the new one, never a part.
    [[nodiscard]] Result<void> write_state(const ServiceState& state) const;

    /// From here on standard output and error go to a new log file. The previous one becomes
    /// `sluice.log.1`.
    [[nodiscard]] Result<void> open_log() const;
    /// Starts anew if the log has grown to `limits::kServiceLogBytes`. Cheap.
    void rotate_full_log() const;

private:
    StateLock(StateFolder folder, UniqueFd file)
        : folder_(std::move(folder)), file_(std::move(file)) {}

    StateFolder folder_;
    UniqueFd file_;
};

}  // namespace sluice::app
