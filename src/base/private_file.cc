#include "base/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace sluice {
namespace {

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t count = ::write(fd, text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return std::unexpected(Error::io("cannot write", errno, path));
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    // Before the rename: else a power cut may leave the new name with nothing in it.
    if (::fsync(fd) == 0) return {};
    return std::unexpected(Error::io("cannot write", errno, path));
}

std::string resolved(const std::string& path) {
    std::error_code error;
    const auto target = std::filesystem::weakly_canonical(path, error);
    return error ? path : target.string();
}

}  // namespace

Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file && errno == ENOENT) return std::unexpected(Error::not_found("no such file", path));
    if (!file) return std::unexpected(Error::io("cannot open the file", errno, path));
    const auto too_long = [&] {
        return std::unexpected(Error(ErrorCode::kOutOfRange,
                                     fmt::format("holds more than {} bytes", bytes_max), path));
    };
    // What says its length is refused unread; a pipe or a device doesn't say.
    struct stat at{};
    const bool sized = ::fstat(file.get(), &at) == 0 && S_ISREG(at.st_mode);
    if (sized && static_cast<std::uint64_t>(at.st_size) > bytes_max) return too_long();
    std::string text;
    if (sized) text.reserve(static_cast<std::size_t>(at.st_size));
    std::array<char, 16 * 1024> piece;
    while (text.size() <= bytes_max) {
        const ssize_t count = ::read(file.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return std::unexpected(Error::io("cannot read the file", errno, path));
        if (count == 0) return text;
        text.append(piece.data(), static_cast<std::size_t>(count));
    }
    return too_long();
}

Result<void> write_private_file(const std::string& name, std::string_view text) {
    const std::string path = resolved(name);
    std::string fresh = path + ".XXXXXX";
    const UniqueFd file(::mkostemp(fresh.data(), O_CLOEXEC));  // Mode 0600.
    if (!file) return std::unexpected(Error::io("cannot write", errno, path));
    auto written = write_all(file.get(), text, path);
    if (written && ::rename(fresh.c_str(), path.c_str()) != 0) {
        written = std::unexpected(Error::io("cannot write", errno, path));
    }
    if (!written) ::unlink(fresh.c_str());
    return written;
}

Result<UniqueFd> lock_beside(const std::string& path) {
    const std::string lock = path + ".lock";
    UniqueFd file(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file) return std::unexpected(Error::io("cannot open the lock file", errno, lock));
    while (::flock(file.get(), LOCK_EX) != 0) {
        if (errno != EINTR) return std::unexpected(Error::io("cannot lock", errno, lock));
    }
    return file;
}

std::string file_version(const std::string& path) {
    struct stat at{};
    if (::stat(path.c_str(), &at) != 0) return {};
    return fmt::format("{}:{}:{}:{}.{}", at.st_dev, at.st_ino, at.st_size, at.st_mtim.tv_sec,
                       at.st_mtim.tv_nsec);
}

}  // namespace sluice
