#include "kv/ssd_lives.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/unique_fd.h"
#include "kv/byte_codec.h"
#include "kv/ssd_format.h"

namespace sluice::kv {
namespace {

constexpr std::size_t kFileBytesMax = kSsdSegmentEntries * kSsdLifeBytes;

std::unexpected<Error> failed(std::string_view what, int number, const std::string& path) {
    return std::unexpected(Error::io(what, number, path));
}

/// Never 0, so that a slot of zeros is one that was never written.
std::uint64_t check_of(std::uint64_t nonce, const SsdLife& life) {
    std::string bytes;
    ByteWriter writer(bytes);
    writer.number(nonce);
    writer.number(life.slot);
    writer.number(static_cast<std::uint64_t>(life.expires_ms));
    return checksum_of(bytes).low | 1U;
}

}  // namespace

Result<void> write_lives(const std::string& path, std::uint64_t nonce,
                         std::span<const SsdLife> lives, const SsdFaults& faults) {
    std::this_thread::sleep_for(faults.delay());
    if (const int error = faults.write_error()) return failed("cannot write", error, path);
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!fd) return failed("cannot write", errno, path);
    for (const SsdLife& life : lives) {
        std::string bytes;
        ByteWriter writer(bytes);
        writer.number(static_cast<std::uint64_t>(life.expires_ms));
        writer.number(check_of(nonce, life));
        // So few bytes, which never cross a sector, are written whole or not at all.
        const auto count = ::pwrite(fd.get(), bytes.data(), bytes.size(),
                                    static_cast<off_t>(life.slot * kSsdLifeBytes));
        if (count < 0) return failed("cannot write", errno, path);
        if (static_cast<std::size_t>(count) != bytes.size())
            return failed("cannot write", ENOSPC, path);
    }
    return {};
}

Result<void> sync_lives(const std::string& path, const SsdFaults& faults) {
    std::this_thread::sleep_for(faults.delay());
    if (const int error = faults.read_error()) return failed("cannot write to disk", error, path);
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return {};
    if (!fd || ::fdatasync(fd.get()) != 0) return failed("cannot write to disk", errno, path);
    return {};
}

Result<std::vector<SsdLife>> read_lives(const std::string& path, std::uint64_t nonce,
                                        const SsdFaults& faults) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return std::vector<SsdLife>{};
    if (!fd) return failed("cannot read", errno, path);
    std::string bytes(kFileBytesMax, '\0');
    std::size_t size = 0;
    while (size < bytes.size()) {
        std::this_thread::sleep_for(faults.delay());
        if (const int error = faults.read_error()) return failed("cannot read", error, path);
        const std::size_t asked = faults.transferred(bytes.size() - size);
        const ssize_t count = ::pread(fd.get(), &bytes[size], asked, static_cast<off_t>(size));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("cannot read", errno, path);
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
    }
    bytes.resize(size / kSsdLifeBytes * kSsdLifeBytes);
    faults.damage(std::as_writable_bytes(std::span(bytes)));

    std::vector<SsdLife> lives;
    ByteReader reader(bytes);
    for (std::uint32_t slot = 0; reader.left() != 0; ++slot) {
        SsdLife life{.slot = slot,
                     .expires_ms = static_cast<std::int64_t>(reader.number<std::uint64_t>())};
        const auto check = reader.number<std::uint64_t>();
        if (check == 0 && life.expires_ms == 0) continue;
        if (check != check_of(nonce, life)) life.expires_ms = kSsdErased;
        lives.push_back(life);
    }
    return lives;
}

}  // namespace sluice::kv
