#include "kv/ssd_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

namespace sluice::kv {
namespace {

std::unexpected<Error> failed(std::string_view what, int number, const std::string& path) {
    if (number == ENOSPC || number == EDQUOT) {
        return std::unexpected(Error(ErrorCode::kExhausted, "finds no room on the disk", path));
    }
    return std::unexpected(Error::io(what, number, path));
}

struct Opened {
    UniqueFd fd;
    SsdAccess access;
};

/// Not every file system knows O_DIRECT; whether one does, only trying tells.
Opened open_file(const std::string& path, int flags, SsdAccess access) {
    if (access == SsdAccess::kDirect) {
        UniqueFd fd(::open(path.c_str(), flags | O_DIRECT | O_CLOEXEC, S_IRUSR | S_IWUSR));
        if (fd || errno != EINVAL) return {.fd = std::move(fd), .access = access};
        flags &= ~O_EXCL;  // The refused attempt may have made the file.
    }
    return {.fd = UniqueFd(::open(path.c_str(), flags | O_CLOEXEC, S_IRUSR | S_IWUSR)),
            .access = SsdAccess::kCached};
}

}  // namespace

SsdFile::SsdFile(std::string path, UniqueFd fd, SsdAccess access, const SsdFaults& faults,
                 SsdSpace::Claim claim)
    : claim_(std::move(claim)),
      path_(std::move(path)),
      fd_(std::move(fd)),
      access_(access),
      faults_(faults) {}

Result<std::shared_ptr<SsdFile>> SsdFile::create(std::string path, std::uint64_t bytes,
                                                 SsdAccess access, const SsdFaults& faults,
                                                 SsdSpace::Claim claim) {
    if (const int error = faults.write_error()) return failed("cannot create", error, path);
    Opened opened = open_file(path, O_RDWR | O_CREAT | O_EXCL, access);
    if (!opened.fd) return failed("cannot create", errno, path);
    // A full disk shows here, before anything is written. The size stays: it tells a later start how
    // far this file got.
    if (::fallocate(opened.fd.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS) {
        const int error = errno;
        ::unlink(path.c_str());
        return failed("cannot create", error, path);
    }
    return std::make_shared<SsdFile>(std::move(path), std::move(opened.fd), opened.access, faults,
                                     std::move(claim));
}

Result<std::shared_ptr<SsdFile>> SsdFile::open(std::string path, SsdAccess access,
                                               const SsdFaults& faults, SsdSpace::Claim claim) {
    Opened opened = open_file(path, O_RDWR, access);
    if (!opened.fd) return failed("cannot open", errno, path);
    return std::make_shared<SsdFile>(std::move(path), std::move(opened.fd), opened.access, faults,
                                     std::move(claim));
}

Result<void> SsdFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        std::this_thread::sleep_for(faults_.delay());
        if (const int error = faults_.write_error()) return failed("cannot write", error, path_);
        const ssize_t count = ::pwrite(fd_.get(), bytes.data(), faults_.transferred(bytes.size()),
                                       static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("cannot write", errno, path_);
        // What ends within a sector is written again from its start: the disk takes whole ones.
        const std::size_t done =
            static_cast<std::size_t>(count) / kSsdSectorBytes * kSsdSectorBytes;
        if (done == 0) return failed("cannot write", EIO, path_);
        bytes = bytes.subspan(done);
        offset += done;
    }
    return {};
}

Result<void> SsdFile::read(std::span<std::byte> bytes, std::uint64_t offset) const {
    const std::span<std::byte> all = bytes;
    while (!bytes.empty()) {
        std::this_thread::sleep_for(faults_.delay());
        if (const int error = faults_.read_error()) return failed("cannot read", error, path_);
        const ssize_t count = ::pread(fd_.get(), bytes.data(), faults_.transferred(bytes.size()),
                                      static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("cannot read", errno, path_);
        const std::size_t done =
            static_cast<std::size_t>(count) / kSsdSectorBytes * kSsdSectorBytes;
        if (done == 0) return std::unexpected(Error::corrupt("ends too early", path_));
        bytes = bytes.subspan(done);
        offset += done;
    }
    faults_.damage(all);
    return {};
}

Result<void> SsdFile::sync() {
    std::this_thread::sleep_for(faults_.delay());
    if (const int error = faults_.read_error()) return failed("cannot write to disk", error, path_);
    if (::fdatasync(fd_.get()) != 0) return failed("cannot write to disk", errno, path_);
    return {};
}

Result<void> SsdFile::truncate(std::uint64_t bytes) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
        return failed("cannot cut", errno, path_);
    return {};
}

Result<std::uint64_t> SsdFile::size() const {
    struct stat now{};
    if (::fstat(fd_.get(), &now) != 0) return failed("cannot read", errno, path_);
    return static_cast<std::uint64_t>(now.st_size);
}

}  // namespace sluice::kv
