#pragma once

// What this machine does at most on the target in use: yardsticks for benches, measured for some tens of
// milliseconds from registers and by reading memory, never assumed.

#include <cstddef>

#include "base/thread_team.h"
#include "tensor/aligned_buffer.h"

namespace sluice::tensor {

/// Of the whole team together.
struct MachinePeak {
    double float_multiply_adds = 0.0;  ///< f32, per second.
    double int8_multiply_adds = 0.0;   ///< As the q8_0 kernels do them, per second.
};

[[nodiscard]] MachinePeak measure_peak(ThreadTeam& team);

/// How fast the team reads memory. Shared machines change from second to second: what is compared with it
/// should be measured right after it.
class MemoryReader {
public:
    /// `working_set` in bytes decides which cache, or none, is read from; capped at 512 MiB.
    MemoryReader(ThreadTeam& team, std::size_t working_set);

    /// Bytes per second, each byte read by one member: the most of some runs of some milliseconds.
    [[nodiscard]] double measure();

private:
    ThreadTeam* team_;
    std::size_t part_;  ///< Floats of one member.
    FloatBuffer memory_;
};

}  // namespace sluice::tensor
