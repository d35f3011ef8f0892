#pragma once

// A connection is a file, and shells hand on a limit of 1,024 of them.

#include <cstdint>

namespace sluice {

/// Raises this process's limit of open files to what the system allows it; returns what it is then.
std::uint64_t raise_file_limit();

}  // namespace sluice
