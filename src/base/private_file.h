#pragma once

// Files that are read whole, within a bound; and small ones that hold secrets or their digests, which
// are replaced at once and open to their owner alone.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sluice {

/// The whole file. Error `kNotFound` if there is none, `kOutOfRange` if it holds more than
/// `bytes_max`, `kIo` for what the system refuses.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path, std::size_t bytes_max);

/// Replaces `path` by a file of mode 0600. Whoever reads, and whatever crashes, finds the old text
/// or the new one, never a part. `path` may be a symbolic link: its target is replaced.
[[nodiscard]] Result<void> write_private_file(const std::string& path, std::string_view text);

/// Held by those who read, change and write `path`, so that no change is lost. Waits for its turn;
/// lives in `path`.lock, which stays.
[[nodiscard]] Result<UniqueFd> lock_beside(const std::string& path);

/// Changes whenever the file may have changed; empty if there is none.
[[nodiscard]] std::string file_version(const std::string& path);

}  // namespace sluice
