#pragma once

// `sluice run --prompt`: one answer, shown as it is generated.

#include <string>

#include "app/run_row.h"

namespace sluice::app {

struct RunPromptOptions {
    std::string prompt;
    std::uint64_t seed = 0;
    bool json = false;  ///< The row of a batch run instead of the text.
};

[[nodiscard]] int run_prompt(const RunPromptOptions& options, const RunModel& model,
                             const RunDefaults& defaults);

}  // namespace sluice::app
