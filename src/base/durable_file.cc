#include "base/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/unique_fd.h"

namespace sluice {
namespace {

std::unexpected<Error> failed(std::string_view what, const std::string& path) {
    return std::unexpected(Error::io(what, errno, path));
}

Result<void> write_and_sync(int fd, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t count = ::write(fd, text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("cannot write", path);
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    if (::fsync(fd) != 0) return failed("cannot write to disk", path);
    return {};
}

/// A new name is on disk once its folder is.
Result<void> sync_folder_of(const std::string& path) {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    const std::string folder = parent.empty() ? std::string(".") : parent.string();
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) return failed("cannot write to disk", folder);
    return {};
}

}  // namespace

Result<void> write_durably(const std::string& path, std::string_view text) {
    const std::string fresh = path + ".new";
    {
        const UniqueFd fd(
            ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
        if (!fd) return failed("cannot write", fresh);
        if (auto written = write_and_sync(fd.get(), text, fresh); !written) return written;
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) return failed("cannot replace", path);
    return sync_folder_of(path);
}

Result<void> append_durably(const std::string& path, std::string_view text, std::size_t bytes_max) {
    struct stat now{};
    if (::stat(path.c_str(), &now) == 0 && static_cast<std::size_t>(now.st_size) >= bytes_max &&
        ::rename(path.c_str(), (path + ".1").c_str()) != 0) {
        return failed("cannot move aside", path);
    }
    const UniqueFd fd(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!fd) return failed("cannot write", path);
    if (auto written = write_and_sync(fd.get(), text, path); !written) return written;
    return sync_folder_of(path);
}

Result<std::optional<std::string>> read_if_there(const std::string& path, std::size_t bytes_max) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return std::nullopt;
    if (!fd) return failed("cannot read", path);
    std::string text;
    std::array<char, 16 * 1024> buffer{};
    for (;;) {
        const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("cannot read", path);
        if (count == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(count));
        if (text.size() > bytes_max)
            return std::unexpected(Error::corrupt("is longer than it can be", path));
    }
}

}  // namespace sluice
