#pragma once

// A file in memory without reading it: weights are paged in as they are used and shared between
// the processes of one machine. The bytes stay valid and at the same address until the object ends,
// also when it is moved, so views into them may be kept beside it.
//
// Invariant: `bytes()` is empty or a read-only mapping of the whole regular file as it was when
// opened. Who truncates a mapped file ends every reader of it with SIGBUS: replace files by rename.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/error.h"

namespace sluice::checkpoint {

/// What tells without reading that a file is the one seen before. Equal stamps mean equal bytes as far
/// as the file system's clock can tell: see if_settled.
struct FileStamp {
    std::uint64_t bytes = 0;
    std::uint64_t inode = 0;
    std::int64_t modified_ns = 0;  ///< Since 1970.
    std::int64_t changed_ns = 0;   ///< Nobody can set it back.

    bool operator==(const FileStamp&) const = default;
    [[nodiscard]] explicit operator bool() const { return *this != FileStamp{}; }
    /// The stamp, or none for a file that has changed within the last two seconds: another change
    /// might fall into the same tick of the file system's clock.
    [[nodiscard]] FileStamp if_settled() const;
};

class MappedFile {
public:
    /// Errors (kNotFound, kIo, kInvalid for a folder) name the path.
    [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

    MappedFile() = default;
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    /// Empty for an empty, default-constructed or moved-from file.
    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
    /// As it was when the file was opened.
    [[nodiscard]] const FileStamp& stamp() const { return stamp_; }
    /// Takes the pages out of this process's memory; they come again, from the disk if need be.
    void release_pages() const;

private:
    MappedFile(std::span<const std::byte> bytes, const FileStamp& stamp)
        : bytes_(bytes), stamp_(stamp) {}
    void unmap() noexcept;

    std::span<const std::byte> bytes_;
    FileStamp stamp_;
};

}  // namespace sluice::checkpoint
