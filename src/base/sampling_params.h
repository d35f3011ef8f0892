#pragma once

// What a request asks of the sampler. One structure from the protocol's front door to the engine's
// last step, so that no hop can drop or rename a field.

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice {

/// Index into a model's vocabulary.
using TokenId = std::int32_t;

struct SamplingParams {
    std::uint32_t max_new_tokens = 16;  ///< Includes the stop token.
    float temperature = 1.0F;           ///< 0 is greedy; at most 2.
    float top_p = 1.0F;                 ///< (0, 1]; 1 is off.
    std::int32_t top_k = 0;             ///< 0 is off.
    float min_p = 0.0F;                 ///< [0, 1]; 0 is off.
    std::uint64_t seed = 0;             ///< Always set: the gateway draws one where none was given.
    float frequency_penalty = 0.0F;     ///< [-2, 2], times the count of the token in the output.
    float presence_penalty = 0.0F;      ///< [-2, 2], once if the token is in the output.
    float repetition_penalty = 1.0F;    ///< (0, 2], over prompt and output; 1 is off.
    std::vector<std::pair<TokenId, float>> logit_bias;  ///< Added; each in [-100, 100].
    std::vector<TokenId> stop_token_ids;                ///< Beside the model's own end tokens.
    std::uint32_t min_new_tokens = 0;  ///< Stop tokens can't be drawn before this many.
    bool ignore_eos = false;           ///< The model's own end tokens don't stop.

    bool operator==(const SamplingParams&) const = default;
};

}  // namespace sluice
