#pragma once

// A file in memory without reading it: weights are paged in as they are used and shared between
// the processes of one machine. The bytes stay valid and at the same address until the object ends,
// also when it is moved, so views into them may be kept beside it.
//
// Invariant: `bytes()` is empty or a read-only mapping of the whole regular file as it was when
// opened. Who truncates a mapped file ends every reader of it with SIGBUS: replace files by rename.

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/error.h"

namespace sluice::checkpoint {

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

private:
    explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
    void unmap() noexcept;

    std::span<const std::byte> bytes_;
};

}  // namespace sluice::checkpoint
