#pragma once

// Small files that must be there, whole, after a power cut.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

/// Replaces the file: readers, and whoever comes after a crash, see the old text or the new one.
/// Once it returns, the new one is on disk. Only the owner can read it.
[[nodiscard]] Result<void> write_durably(const std::string& path, std::string_view text);

/// Appends `text` and waits until it is on disk. A file of `bytes_max` or more becomes "PATH.1" first,
/// in place of the one before.
[[nodiscard]] Result<void> append_durably(const std::string& path, std::string_view text,
                                          std::size_t bytes_max);

/// The file's text; nullopt if there is no file. Error `kIo` if it can't be read, `kCorrupt` if it is
/// longer than `bytes_max`.
[[nodiscard]] Result<std::optional<std::string>> read_if_there(const std::string& path,
                                                               std::size_t bytes_max);

}  // namespace sluice
