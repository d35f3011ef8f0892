#pragma once

// What a step must compute and read, whoever computes it: the numerators of a bench's shares.

#include "engine/model.h"

namespace sluice::engine {

struct StepCost {
    double matrix_multiply_adds = 0.0;     ///< With weights.
    double attention_multiply_adds = 0.0;  ///< With cached rows; always f32.
    double bytes = 0.0;                    ///< Weights, each once, and cached rows.
};

/// A prompt of `tokens` in one step, with the logits of its last token.
[[nodiscard]] StepCost prompt_cost(const Model& model, std::size_t tokens);

/// One token of each of `batch` sequences that have `positions` rows. Of the experts, as many are
/// counted as that many tokens choose on average when all are equally likely.
[[nodiscard]] StepCost decode_cost(const Model& model, std::size_t batch, double positions);

}  // namespace sluice::engine
