#pragma once

// What this machine does at most on the target in use: yardsticks for benches, measured for some tens of
// milliseconds from registers and by reading memory, never assumed.

#include <cstddef>

#include "base/thread_team.h"

namespace sluice::tensor {

/// Of the whole team together.
struct MachinePeak {
    double float_multiply_adds = 0.0;  ///< f32, per second.
    double int8_multiply_adds = 0.0;   ///< As the q8_0 kernels do them, per second.
    double read_bytes = 0.0;  ///< Per second, from the working set, each byte by one member.
};

/// `working_set` in bytes decides which cache, or none, is read from; capped at 512 MiB.
[[nodiscard]] MachinePeak measure_peak(ThreadTeam& team, std::size_t working_set);

}  // namespace sluice::tensor
