#pragma once

// From how long an engine took to what its steps cost: least squares of the relative errors, so that a
// short run counts as much as a long one, and no cost below zero.

#include <cstdint>
#include <span>

#include "sim/engine_parameters.h"

namespace sluice::sim {

/// What an engine did in some steps, and how long it took for all of them.
struct MeasuredRun {
    std::uint64_t steps = 0;
    StepLoad load;  ///< Of all steps together.
    double microseconds = 0.0;
};

/// As `parameters` have it.
[[nodiscard]] double predicted_microseconds(const EngineParameters& parameters,
                                            const MeasuredRun& run);

/// How far the predictions are off: the root of the mean of their relative errors' squares.
[[nodiscard]] double fit_error(const EngineParameters& parameters,
                               std::span<const MeasuredRun> runs);

/// Sets the costs of a step, and of prompts and answers within it; what is near is what the runs' loads
/// were made with. Error `kInvalid` if the runs can't tell the costs apart: fewer runs than costs, or
/// all of one kind.
[[nodiscard]] Result<void> fit_steps(std::span<const MeasuredRun> runs,
                                     EngineParameters& parameters);

}  // namespace sluice::sim
