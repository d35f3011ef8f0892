#pragma once

// Lines of a file or pipe, one at a time: memory holds one line and one block, however large the file
// is, and a line beyond the bound is skipped without being held.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"
#include "base/unique_fd.h"

namespace sluice::app {

enum class LineKind : std::uint8_t {
    kLine,
    kTooLong,  ///< Beyond the bound; its text is gone.
    kEnd,
    kStopped,  ///< The user interrupted while waiting for input.
};

struct Line {
    LineKind kind = LineKind::kEnd;
    std::string_view text;  ///< Without its newline; valid until the next call.
    bool complete = false;  ///< A newline ended it, not the end of the file.
};

class LineReader {
public:
    /// The descriptor stays the caller's.
    explicit LineReader(int fd, std::size_t bytes_max = limits::kBatchLineBytes)
        : fd_(fd), bytes_max_(bytes_max) {}

    [[nodiscard]] Result<Line> next();

    /// Whether `next` would answer without waiting for another process to write.
    [[nodiscard]] bool ready() const;

    /// Where the next line starts, in bytes from where reading began.
    [[nodiscard]] std::uint64_t offset() const { return offset_; }

private:
    /// False at the end of the file.
    [[nodiscard]] Result<bool> fill();
    [[nodiscard]] Line take(std::size_t size, bool complete);

    int fd_;
    std::size_t bytes_max_;
    std::string buffer_;
    std::size_t begin_ = 0;    ///< Of the next line in `buffer_`.
    std::size_t scanned_ = 0;  ///< No newline in [begin_, scanned_).
    std::uint64_t offset_ = 0;
    bool skipping_ = false;  ///< Inside a line that is too long.
    bool stopped_ = false;
};

}  // namespace sluice::app
