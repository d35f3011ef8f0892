#pragma once

// A loaded model with what a prompt needs on its way in and out, on the calling thread: no server, no
// socket, and the same tokens as through one.

#include <memory>
#include <string>

#include "base/error.h"
#include "engine/engine.h"
#include "text/tokenizer.h"

namespace sluice::app {

struct RunModelOptions {
    std::string model;
    std::size_t threads = 1;
    engine::Speculation speculation = engine::Speculation::kOff;
    std::size_t batch = 1;  ///< Requests computed together.
};

struct RunModel {
    std::unique_ptr<engine::Engine> engine;
    text::Tokenizer tokenizer;
    std::string dialect;  ///< Empty if the checkpoint names none.
};

[[nodiscard]] Result<RunModel> load_run_model(const RunModelOptions& options);

}  // namespace sluice::app
