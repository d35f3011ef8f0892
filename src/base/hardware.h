#pragma once

// What machine this is, for people.

#include <string>

namespace sluice {

/// "2 x AMD EPYC 9654 96-Core Processor": threads and name of the CPU; the architecture where the
/// kernel tells no name.
[[nodiscard]] std::string cpu_name();

}  // namespace sluice
