#pragma once

// `sluice run --input`: a file of prompts through the engine. Memory holds the rows in flight and a
// digest per id; rows go out as they finish; a run that was stopped, or killed, is taken up by giving
// the same command again, and both together write the rows that one run would have written.

#include <string>

#include "app/run_row.h"

namespace sluice::app {

struct RunBatchOptions {
    std::string input;   ///< "-" is standard input.
    std::string output;  ///< "-" is standard output: then nothing is remembered.
    /// Rows draw their seeds from it and their id. Fixed, so that a run can be taken up.
    std::uint64_t seed = 0;
    std::size_t batch = 64;  ///< Rows in flight.
    bool json = false;       ///< A JSON summary on stdout.
};

/// Answers an exit code: kFailed if a row failed, kInterrupted after Ctrl-C.
[[nodiscard]] int run_batch(const RunBatchOptions& options, const RunModel& model,
                            const RunDefaults& defaults);

}  // namespace sluice::app
