#include "app/state_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/limits.h"
#include "base/private_file.h"

namespace sluice::app {
namespace {

namespace fs = std::filesystem;

struct flock whole_file(short type) {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

Result<void> make_private_folder(const std::string& path) {
    std::error_code error;
    const fs::path folder(path);
    if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
    if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return std::unexpected(Error::io("cannot make the state folder", errno, path));
}

/// Whether `fd` is still the file that `path` names: the last holder may have removed it between
/// the opening and the locking.
bool is_file(int fd, const std::string& path) {
    struct stat opened{};
    struct stat named{};
    return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t count = ::write(fd, text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return std::unexpected(Error::io("cannot write", errno, path));
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
}

}  // namespace

Result<StateFolder> StateFolder::find(const std::string& chosen) {
    if (!chosen.empty()) {
        std::error_code error;
        const fs::path absolute = fs::absolute(chosen, error);
        return StateFolder(error ? chosen : absolute.lexically_normal().string());
    }
    if (const std::string state = environment("XDG_STATE_HOME"); state.starts_with('/')) {
        return StateFolder(state + "/sluice");
    }
    if (const std::string home = environment("HOME"); home.starts_with('/')) {
        return StateFolder(home + "/.local/state/sluice");
    }
    return std::unexpected(
        Error::not_found("neither XDG_STATE_HOME nor HOME is set; name a state folder", "--state"));
}

std::optional<pid_t> StateFolder::holder() const {
    const UniqueFd file(::open(lock_path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    struct flock lock = whole_file(F_WRLCK);
    if (::fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
    return lock.l_pid;
}

Result<ServiceState> StateFolder::read_state() const {
    const auto text = read_small_file(state_path(), limits::kServiceStateBytes);
    if (!text) return std::unexpected(Error::not_found("no service is ready", state_path()));
    Result<ServiceState> state = parse_service_state(*text);
    if (!state) return std::unexpected(state.error().within(state_path()));
    return state;
}

Result<StateLock> StateLock::acquire(const StateFolder& folder) {
    if (const auto made = make_private_folder(folder.path()); !made) {
        return std::unexpected(made.error());
    }
    const std::string path = folder.lock_path();
    // Each turn but the last needs another service that ended just now.
    for (int turn = 0; turn < 100; ++turn) {
        UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        if (!file) return std::unexpected(Error::io("cannot open the lock file", errno, path));
        struct flock lock = whole_file(F_WRLCK);
        if (::fcntl(file.get(), F_SETLK, &lock) != 0) {
            if (errno == EAGAIN || errno == EACCES) break;
            return std::unexpected(Error::io("cannot lock", errno, path));
        }
        if (!is_file(file.get(), path)) continue;
        ::unlink(folder.state_path().c_str());  // Of a service that was killed.
        return StateLock(folder, std::move(file));
    }
    return std::unexpected(Error(ErrorCode::kUnavailable, "a service runs already", path));
}

StateLock::~StateLock() {
    if (!file_) return;
    ::unlink(folder_.state_path().c_str());
    // While it is still locked: nobody else can have made it theirs.
    ::unlink(folder_.lock_path().c_str());
}

Result<void> StateLock::write_state(const ServiceState& state) const {
    const std::string path = folder_.state_path();
    const std::string fresh = path + ".new";
    const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) return std::unexpected(Error::io("cannot write", errno, fresh));
    if (auto written = write_all(file.get(), to_json(state) + "\n", fresh); !written) {
        return written;
    }
    if (::rename(fresh.c_str(), path.c_str()) == 0) return {};
    return std::unexpected(Error::io("cannot write", errno, path));
}

Result<void> StateLock::open_log() const {
    const std::string path = folder_.log_path();
    ::rename(path.c_str(), (path + ".1").c_str());  // The first time there is none.
    const UniqueFd log(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
    if (!log || ::dup2(log.get(), STDOUT_FILENO) < 0 || ::dup2(log.get(), STDERR_FILENO) < 0) {
        return std::unexpected(Error::io("cannot open the log", errno, path));
    }
    return {};
}

void StateLock::rotate_full_log() const {
    struct stat log{};
    if (::fstat(STDERR_FILENO, &log) != 0 || !S_ISREG(log.st_mode)) return;
    if (log.st_size < static_cast<off_t>(limits::kServiceLogBytes)) return;
    // If it fails the old file goes on growing, which is better than no log.
    [[maybe_unused]] const auto opened = open_log();
}

}  // namespace sluice::app
