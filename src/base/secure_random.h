#pragma once

// Bytes nobody can guess, from the kernel. For keys and tokens; everything that must be repeatable
// takes its randomness from a seed instead.

#include <cstdint>
#include <span>

namespace sluice {

/// Blocks only in the first moments after a machine's start.
void fill_secure_random(std::span<std::uint8_t> bytes);

}  // namespace sluice
