#pragma once

// A ring of texts in a mapped file: what is appended is with the kernel at once, and outlives this
// process however it ends. Rows of failures wait here until the database has them, so that a killed
// gateway loses none, and appending costs a copy: no system call, no wait for a disk.
//
// The file's blocks are reserved when it is made, so a full disk does not touch it later. A power
// cut may lose what the kernel had not written; every entry has a checksum, and what fails it ends
// the ring. One process at a time has the file (it is locked), and its owner serialises the calls.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sluice::record {

class FailureJournal {
public:
    /// A place in the endless stream of appended bytes; only grows.
    using Position = std::uint64_t;

    struct Entry {
        std::string text;
        Position next = 0;  ///< Where the entry after it begins.
    };

    /// Opens the ring at `path` with what it still holds (it keeps its size), or makes one of
    /// `bytes`. A file that is no ring is renamed to "PATH.corrupt" and a new one begun.
    /// Errors: `kUnavailable` if another process has it, `kExhausted` if there is no room, `kIo`.
    [[nodiscard]] static Result<FailureJournal> open(const std::string& path, std::size_t bytes);

    /// A ring without a file, for when there is no room for one: it ends with the process.
    [[nodiscard]] static Result<FailureJournal> in_memory(std::size_t bytes);

    FailureJournal(FailureJournal&& other) noexcept;
    FailureJournal& operator=(FailureJournal&&) = delete;
    ~FailureJournal();

    /// False if there is no room for it.
    [[nodiscard]] bool append(std::string_view text);

    /// The entry at `position`; nullopt at the end, and where the ring is damaged.
    [[nodiscard]] std::optional<Entry> read(Position position) const;

    /// Everything before `position` is safe elsewhere.
    void release(Position position);
    /// Forgets everything: what is left can't be read.
    void clear() { release(end()); }

    [[nodiscard]] Position begin() const;
    [[nodiscard]] Position end() const;
    [[nodiscard]] std::size_t capacity() const { return capacity_; }
    /// Tells this ring from one made earlier under the same name.
    [[nodiscard]] std::uint64_t id() const;

private:
    struct Header;
    FailureJournal(UniqueFd file, void* memory, std::size_t capacity);
    [[nodiscard]] static Result<FailureJournal> map(UniqueFd file, std::size_t bytes);
    [[nodiscard]] static Result<FailureJournal> make(UniqueFd file, const std::string& path,
                                                     std::size_t bytes);
    void initialise();
    [[nodiscard]] bool sane() const;
    void copy_in(Position position, const void* data, std::size_t size);
    void copy_out(Position position, void* data, std::size_t size) const;

    UniqueFd file_;
    Header* header_ = nullptr;
    std::byte* ring_ = nullptr;
    std::size_t capacity_ = 0;
};

}  // namespace sluice::record
