#include "checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

namespace sluice::checkpoint {
namespace {

/// Closes with its scope; the mapping outlives its descriptor.
struct Descriptor {
    int number;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
};

Error open_error(int error_number, const std::filesystem::path& path) {
    if (error_number == ENOENT || error_number == ENOTDIR) {
        return Error::not_found("there is no such file", path.string());
    }
    return Error::io("cannot open the file", error_number, path.string());
}

std::int64_t nanoseconds(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStamp FileStamp::if_settled() const {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    constexpr std::int64_t kSettled = 2'000'000'000;
    return nanoseconds(now) - changed_ns >= kSettled ? *this : FileStamp{};
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.number < 0) return std::unexpected(open_error(errno, path));

    struct stat status{};
    if (::fstat(file.number, &status) != 0) {
        return std::unexpected(Error::io("cannot read the file's size", errno, path.string()));
    }
    if (!S_ISREG(status.st_mode)) {
        return std::unexpected(Error::invalid("this is not a regular file", path.string()));
    }
    if (status.st_size == 0) return MappedFile();

    const auto size = static_cast<std::size_t>(status.st_size);
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number, 0);
    if (address == MAP_FAILED) {
        return std::unexpected(Error::io("cannot map the file", errno, path.string()));
    }
    const FileStamp stamp{.bytes = size,
                          .inode = status.st_ino,
                          .modified_ns = nanoseconds(status.st_mtim),
                          .changed_ns = nanoseconds(status.st_ctim)};
    return MappedFile(std::span(static_cast<const std::byte*>(address), size), stamp);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), stamp_(std::exchange(other.stamp_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    if (this != &other) {
        unmap();
        bytes_ = std::exchange(other.bytes_, {});
        stamp_ = std::exchange(other.stamp_, {});
    }
    return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::release_pages() const {
    if (!bytes_.empty())
        ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

void MappedFile::unmap() noexcept {
    if (bytes_.empty()) return;
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    bytes_ = {};
}

}  // namespace sluice::checkpoint
