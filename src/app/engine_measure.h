#pragma once

// How long the native engine's steps take on this machine, for `bench --fit`.
//
// Other things run on a machine, and some steps take twice as long for it. So everything is measured
// in several passes, some seconds apart, and the median of them counts.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "sim/engine_fit.h"

namespace sluice::app {

/// One step: a chunk of a prompt, or sequences that decode.
struct MeasuredStep {
    std::uint64_t first = 0;  ///< Position of the chunk.
    std::uint64_t chunk = 0;  ///< Prompt tokens.
    std::uint64_t batch = 0;  ///< Sequences that decode, each with `context` tokens.
    std::uint64_t context = 0;
    double microseconds = 0.0;

    /// What is near is `parameters`' to say.
    [[nodiscard]] sim::MeasuredRun run(const sim::EngineParameters& parameters) const;
};

/// Prompts and batches of many sizes.
[[nodiscard]] Result<std::vector<MeasuredStep>> measure_steps(
    const std::shared_ptr<const engine::Model>& model, std::size_t threads);

/// By which share a step takes longer for each of so many engines beside it that compute all the time;
/// measured with and without them in turns. At least 0.
[[nodiscard]] Result<double> measure_neighbours(const std::shared_ptr<const engine::Model>& model,
                                                std::size_t threads, std::size_t neighbours);

}  // namespace sluice::app
