#pragma once

// Assertions guard what only a bug in Sluice can break, never what input can cause: that is an
// Error. They stay on in every build: a wrong token served is worse than a restarted worker.

namespace sluice {

/// Prints the broken condition with its place and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace sluice

#define SLUICE_ASSERT(condition)                         \
    (static_cast<bool>(condition) ? static_cast<void>(0) \
                                  : ::sluice::assertion_failed(#condition, __FILE__, __LINE__))
