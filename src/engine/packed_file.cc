#include "engine/packed_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "tensor/aligned_buffer.h"

namespace sluice::engine {
namespace {

using checkpoint::FileStamp;

constexpr std::uint64_t kMagic = 0x4B43'4150'4349'4C53;  // "SLICPACK"
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kFingerprintDigits = 64;

struct Footer {
    std::uint64_t magic = kMagic;
    std::uint32_t format = kFormatVersion;
    std::uint32_t packing = tensor::kPackingVersion;
    std::uint64_t payload_bytes = 0;
    Xxh128 plan;
    FileStamp stamp;
    std::array<char, kFingerprintDigits> fingerprint{};
    Xxh128 checksum;  ///< Of the table and all of the above.
};
static_assert(sizeof(Footer) == 152 && std::is_trivially_copyable_v<Footer>);

std::size_t chunks_of(std::size_t payload_bytes) {
    return (payload_bytes + PackedFile::kChunkBytes - 1) / PackedFile::kChunkBytes;
}

Xxh128 checksum_of(std::span<const Xxh128> table, const Footer& footer) {
    std::vector<std::byte> bytes(table.size_bytes() + offsetof(Footer, checksum));
    if (!table.empty()) std::memcpy(bytes.data(), table.data(), table.size_bytes());
    std::memcpy(bytes.data() + table.size_bytes(), &footer, offsetof(Footer, checksum));
    return xxh3_128(bytes);
}

Result<void> write_at(int file, std::span<const std::byte> bytes, std::size_t offset) {
    while (!bytes.empty()) {
        const ssize_t written =
            ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0) {
            if (errno == EINTR) continue;
            return std::unexpected(Error::io("write packed weights", errno));
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        offset += static_cast<std::size_t>(written);
    }
    return {};
}

/// Calls work(chunk) for each until one fails; returns the error of the lowest that did.
template <class Work>
Result<void> for_each_chunk(ThreadTeam& team, std::size_t chunks, const Work& work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::optional<std::pair<std::size_t, Error>> failure;
    team.run([&](std::size_t) {
        for (std::size_t chunk = next++; chunk < chunks; chunk = next++) {
            Result<void> done = work(chunk);
            if (done) continue;
            next = chunks;
            const std::lock_guard lock(mutex);
            if (!failure || chunk < failure->first) failure.emplace(chunk, done.error());
        }
    });
    if (failure) return std::unexpected(failure->second);
    return {};
}

}  // namespace

Result<PackedFile> PackedFile::open(const std::filesystem::path& path) {
    auto mapped = checkpoint::MappedFile::open(path);
    if (!mapped) return std::unexpected(mapped.error());
    const std::span<const std::byte> bytes = mapped->bytes();
    const auto corrupt = [&](std::string_view what) {
        return std::unexpected(Error::corrupt(std::string(what), path.string()));
    };
    if (bytes.size() < sizeof(Footer)) return corrupt("too short for packed weights");
    Footer footer;
    std::memcpy(&footer, bytes.last(sizeof(Footer)).data(), sizeof(Footer));
    if (footer.magic != kMagic) return corrupt("this is no whole file of packed weights");
    if (footer.format != kFormatVersion || footer.packing != tensor::kPackingVersion) {
        return std::unexpected(
            Error::unsupported(fmt::format("packed in version {}.{}, not {}.{}", footer.format,
                                           footer.packing, kFormatVersion, tensor::kPackingVersion),
                               path.string()));
    }
    const std::size_t before = bytes.size() - sizeof(Footer);
    if (footer.payload_bytes > before ||
        before - footer.payload_bytes != chunks_of(footer.payload_bytes) * sizeof(Xxh128))
        return corrupt("the size of the packed weights is not what they say of themselves");
    PackedFile file;
    file.checksums_.resize(chunks_of(footer.payload_bytes));
    std::memcpy(file.checksums_.data(), bytes.data() + footer.payload_bytes,
                file.checksums_.size() * sizeof(Xxh128));
    if (checksum_of(file.checksums_, footer) != footer.checksum)
        return corrupt("the packed weights' table is damaged");
    file.identity_ = {.fingerprint = {footer.fingerprint.begin(), footer.fingerprint.end()},
                      .plan = footer.plan,
                      .stamp = footer.stamp};
    file.payload_ = bytes.first(footer.payload_bytes);
    // Pages of 2 MiB where the file system has them: a token's weights are more than a TLB reaches.
    ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_HUGEPAGE);
    file.file_ = std::move(*mapped);
    return file;
}

Result<void> PackedFile::verify(ThreadTeam& team) const {
    return for_each_chunk(team, checksums_.size(), [this](std::size_t chunk) -> Result<void> {
        const std::size_t begin = chunk * kChunkBytes;
        const auto bytes = payload_.subspan(begin, std::min(kChunkBytes, payload_.size() - begin));
        if (xxh3_128(bytes) == checksums_[chunk]) return {};
        return std::unexpected(Error::corrupt(fmt::format(
            "the packed weights are damaged in bytes {} to {}", begin, begin + bytes.size())));
    });
}

Result<void> PackedFile::write(int file, const WeightPlan& plan, const PackedIdentity& identity,
                               ThreadTeam& team, const PackProgress& progress) {
    if (::ftruncate(file, 0) != 0)
        return std::unexpected(Error::io("empty the file of packed weights", errno));
    std::vector<Xxh128> table(chunks_of(plan.bytes()));
    std::mutex mutex;
    std::size_t done = 0;
    const auto written = for_each_chunk(team, table.size(), [&](std::size_t chunk) -> Result<void> {
        const std::size_t begin = chunk * kChunkBytes;
        tensor::AlignedBuffer buffer(std::min(kChunkBytes, plan.bytes() - begin));
        const std::span<std::byte> bytes{buffer.data(), buffer.size()};
        plan.pack(begin, bytes);
        table[chunk] = xxh3_128(bytes);
        if (auto ok = write_at(file, bytes, begin); !ok) return ok;
        const std::lock_guard lock(mutex);
        done += bytes.size();
        if (progress) progress(done, plan.bytes());
        return {};
    });
    if (!written) return written;
    Footer footer;
    footer.payload_bytes = plan.bytes();
    footer.plan = identity.plan;
    footer.stamp = identity.stamp;
    std::ranges::copy(identity.fingerprint, footer.fingerprint.begin());
    footer.checksum = checksum_of(table, footer);
    if (auto ok = write_at(file, std::as_bytes(std::span(table)), plan.bytes()); !ok) return ok;
    const std::size_t end = plan.bytes() + table.size() * sizeof(Xxh128);
    if (auto ok = write_at(file, std::as_bytes(std::span(&footer, 1)), end); !ok) return ok;
    if (::fsync(file) != 0) return std::unexpected(Error::io("sync packed weights", errno));
    return {};
}

}  // namespace sluice::engine
