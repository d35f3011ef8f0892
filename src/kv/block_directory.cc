#include "kv/block_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "base/limits.h"
#include "base/secure_random.h"
#include "kv/block_value.h"
#include "kv/file_time.h"

namespace sluice::kv {
namespace {

// Prompts can be read out of blocks: the group may, if the umask says so, others may not.
constexpr mode_t kFileMode = 0660;
constexpr mode_t kFolderMode = 0770;

void set_used(const std::string& path, WallTime now) {
    const timespec times[2] = {to_timespec(now), to_timespec(now)};
    // Whether it lives a little longer is nothing that a request would fail for.
    static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW));
}

std::unexpected<Error> failed(std::string_view what, int error) {
    return std::unexpected(Error::io(what, error));
}

/// Removes a file that is not wanted any more, unless `keep` says that it is.
class TemporaryBlock {
public:
    explicit TemporaryBlock(std::string path) : path_(std::move(path)) {}
    ~TemporaryBlock() {
        if (!path_.empty()) ::unlink(path_.c_str());
    }
    TemporaryBlock(const TemporaryBlock&) = delete;
    TemporaryBlock& operator=(const TemporaryBlock&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    void keep() { path_.clear(); }

private:
    std::string path_;
};

Result<void> write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("writing a block", errno);
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
}

std::string random_name() {
    std::array<std::uint8_t, 12> random{};
    fill_secure_random(random);
    return fmt::format("{}{}", kTemporaryPrefix, to_hex(random));
}

/// A new file in the folder of `path`, whose two levels are made if they aren't there.
Result<UniqueFd> create_beside(const std::filesystem::path& path, const std::string& temporary) {
    for (bool first = true;; first = false) {
        UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
        if (fd) return fd;
        if (errno != ENOENT || !first) return failed("creating a block's file", errno);
        const std::filesystem::path folder = path.parent_path();
        ::mkdir(folder.parent_path().c_str(), kFolderMode);
        ::mkdir(folder.c_str(), kFolderMode);
    }
}

}  // namespace

Result<BlockDirectory> BlockDirectory::open(std::filesystem::path root, const RetentionTimes& times,
                                            const FaultPoints& faults) {
    std::error_code error;
    std::filesystem::create_directories(root, error);
    if (error) return failed(fmt::format("making {}", root.string()), error.value());
    if (::access(root.c_str(), R_OK | W_OK | X_OK) != 0)
        return failed(fmt::format("using {}", root.string()), errno);
    return BlockDirectory(std::move(root), times, faults);
}

std::string BlockDirectory::path_of(const BlockName& name) const {
    const std::string hex = to_hex(name.key);
    return fmt::format("{}/{}/{}/{}", root_.string(), hex.substr(0, 2), hex.substr(2, 2),
                       to_wire(name));
}

bool BlockDirectory::lives(const BlockName& name, WallTime used, WallTime now) const {
    return times_.end(name.retention, used) > now;
}

bool BlockDirectory::contains(const BlockName& name, WallTime now) const {
    if (faults_.disk_error) return false;
    struct stat file{};
    if (::lstat(path_of(name).c_str(), &file) != 0) return false;
    return S_ISREG(file.st_mode) && lives(name, modified(file), now);
}

Result<BlockDirectory::File> BlockDirectory::open_file(const BlockName& name, WallTime now) const {
    std::this_thread::sleep_for(faults_.disk_slow);
    if (faults_.disk_error) return failed("opening a block", EIO);
    // Somebody else's directory may hold anything: a FIFO must not hold us up.
    UniqueFd fd(::open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const auto missing = std::unexpected(Error::not_found("there is no such block"));
    if (!fd && (errno == ENOENT || errno == ENOTDIR)) return missing;
    if (!fd) return failed("opening a block", errno);
    struct stat file{};
    if (::fstat(fd.get(), &file) != 0) return failed("looking at a block", errno);
    if (!S_ISREG(file.st_mode) || !lives(name, modified(file), now)) return missing;
    return File{.fd = std::move(fd),
                .bytes = static_cast<std::size_t>(file.st_size),
                .used = modified(file)};
}

Result<std::string> BlockDirectory::read_bytes(const File& file, std::size_t bytes) const {
    if (faults_.disk_short) bytes /= 2;
    std::string text;
    int error = 0;
    text.resize_and_overwrite(bytes, [&](char* to, std::size_t room) {
        std::size_t filled = 0;
        while (filled < room) {
            const ssize_t count =
                ::pread(file.fd.get(), to + filled, room - filled, static_cast<off_t>(filled));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) error = errno;
            if (count <= 0) break;  // Cut off meanwhile: the checksum will tell.
            filled += static_cast<std::size_t>(count);
        }
        return filled;
    });
    if (error != 0) return failed("reading a block", error);
    if (faults_.disk_flip && !text.empty()) text[text.size() / 2] ^= 1;
    return text;
}

Result<SharedBytes> BlockDirectory::read(const BlockName& name, WallTime now) const {
    const auto file = open_file(name, now);
    if (!file) return std::unexpected(file.error());
    // A file that is longer than any value is broken; its first bytes are enough to see that.
    auto bytes =
        read_bytes(*file, std::min(file->bytes, limits::kKvBlockBytes + 2 * kBlockStartBytes));
    if (!bytes) return std::unexpected(bytes.error());
    const auto block = decode_block(*bytes);
    if (block && block->header.key == name.key) return SharedBytes::own(*std::move(bytes));
    if (!block && block.error().code() == ErrorCode::kUnsupported)
        return std::unexpected(block.error());
    ::unlink(path_of(name).c_str());
    return std::unexpected(block ? Error::corrupt("the file holds another block") : block.error());
}

std::optional<BlockDirectory::Written> BlockDirectory::compare(const BlockName& name,
                                                               std::string_view value,
                                                               WallTime now) const {
    const auto file = open_file(name, now);
    if (!file) return std::nullopt;
    const auto start = read_bytes(*file, std::min(file->bytes, kBlockStartBytes));
    if (!start) return std::nullopt;
    const auto there = read_block_start(*start);
    const auto bytes = block_value_bytes(*start);
    if (!there || !bytes || *bytes != file->bytes) return std::nullopt;
    const auto ours = read_block_start(value);
    if (ours && there->payload_checksum == ours->payload_checksum) {
        touch(name, now);
        return Written::kWasThere;
    }
    // Before anybody is accused of computing other bits, the file has to be sound.
    if (!read(name, now)) return std::nullopt;
    return Written::kDiffers;
}

Result<BlockDirectory::Written> BlockDirectory::write(const BlockName& name, std::string_view value,
                                                      WallTime now) const {
    if (const auto there = compare(name, value, now)) return *there;
    if (const auto written = write_file(path_of(name), value, now); !written)
        return std::unexpected(written.error());
    return Written::kStored;
}

Result<void> BlockDirectory::write_file(const std::string& path, std::string_view value,
                                        WallTime now) const {
    if (faults_.disk_error) return failed("writing a block", EIO);
    if (faults_.disk_full) return failed("writing a block", ENOSPC);
    const std::filesystem::path place(path);
    std::string beside = place.parent_path() / random_name();
    auto fd = create_beside(place, beside);
    if (!fd) return std::unexpected(fd.error());
    TemporaryBlock temporary(std::move(beside));
    if (auto written = write_all(fd->get(), value); !written) return written;
    const timespec times[2] = {to_timespec(now), to_timespec(now)};
    if (::futimens(fd->get(), times) != 0) return failed("dating a block", errno);
    // File systems over a network say only now what they could not write.
    if (::close(fd->release()) != 0) return failed("writing a block", errno);
    if (::rename(temporary.path().c_str(), path.c_str()) != 0)
        return failed("renaming a block", errno);
    temporary.keep();
    return {};
}

void BlockDirectory::touch(const BlockName& name, WallTime now) const {
    const std::string path = path_of(name);
    struct stat file{};
    if (::lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return;
    const WallTime used = modified(file);
    if (used + times_.slack(name.retention) > now || !lives(name, used, now)) return;
    set_used(path, now);
}

}  // namespace sluice::kv
