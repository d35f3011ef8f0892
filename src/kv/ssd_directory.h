#pragma once

// The folder that an SSD tier owns: who may use it, and what its files are called. A folder with
// anything else in it, of another format, or in use by another process is refused and left as it is.
//
//   sluice-ssd-tier             says what the folder is, and is locked while a process uses it
//   0000000000000001.segment    see kv/ssd_format.h
//   0000000000000001.lives      see kv/ssd_lives.h

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sluice::kv {

class SsdDirectory {
public:
    /// Makes the folder if it isn't there. Errors: `kUnavailable`: another process uses it;
    /// `kUnsupported`: of another format; `kInvalid`: there is something else in it; `kIo`.
    [[nodiscard]] static Result<SsdDirectory> open(std::string path);

    [[nodiscard]] std::string segment_path(std::uint64_t number) const;
    [[nodiscard]] std::string lives_path(std::uint64_t number) const;
    /// Numbers of the segments that are there, ascending. Lives without a segment are removed; other
    /// files are left alone, and the log says so.
    [[nodiscard]] Result<std::vector<std::uint64_t>> segments() const;
    /// A segment's files are gone, as far as they were there.
    void remove(std::uint64_t number) const;
    /// Names of new files are on disk.
    [[nodiscard]] Result<void> sync() const;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    SsdDirectory(std::string path, UniqueFd lock)
        : path_(std::move(path)), lock_(std::move(lock)) {}

    std::string path_;
    UniqueFd lock_;
};

}  // namespace sluice::kv
