#pragma once

// Where tests find the source tree and what was built. Better than the macros of the same name: a file
// that uses a macro is compiled anew in every clone, because ccache sees another path in it.

namespace sluice {

extern const char* const kSourceDir;
extern const char* const kBinaryDir;

}  // namespace sluice
