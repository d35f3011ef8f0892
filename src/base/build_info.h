#pragma once

// Constants that CMake writes into one tiny generated source, so that a new commit recompiles that
// file alone. Read them through base/version.h.

namespace sluice::build_info {

extern const char* const kVersion;
extern const char* const kCommit;
extern const char* const kFlags;

}  // namespace sluice::build_info
