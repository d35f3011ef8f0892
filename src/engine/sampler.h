#pragma once

// Picks the next token of one sequence (docs/exactness.md, rule 10): penalties, bias, mask,
// temperature, top-k, top-p, min-p, then a Gumbel-max draw. A pick depends on the logits, the
// parameters, the tokens so far and the position, and on no earlier pick's randomness; so a sampler
// that is rebuilt from a sequence's tokens picks as if it had been there all along.

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/sampling_params.h"
#include "engine/request.h"

namespace sluice::engine {

/// Working memory for one pick; one per thread, reused.
struct SamplerScratch {
    explicit SamplerScratch(std::size_t vocabulary);
    std::vector<float> values;
    std::vector<float> exponentials;
    std::vector<TokenId> order;
    std::vector<float> unchanged;  ///< Logits before a pick changes them.
};

class Sampler {
public:
    /// `end_tokens` are the model's own; `prompt` counts for the repetition penalty.
    Sampler(const SamplingParams& params, std::span<const TokenId> end_tokens,
            std::span<const TokenId> prompt);

    /// Takes note of an output token, drawn here or given by a resume.
    void accept(TokenId token);

    /// The token for absolute position `position`. `logits` are changed.
    /// Error `kInternal` if a logit is NaN.
    [[nodiscard]] Result<TokenId> pick(std::span<float> logits, std::uint64_t position,
                                       SamplerScratch& scratch) const;

    /// Whether `token` ends the answer: an end token (unless ignored) or one of stop_token_ids.
    [[nodiscard]] bool is_stop(TokenId token) const;

    [[nodiscard]] std::uint32_t output_tokens() const { return output_tokens_; }

private:
    void apply_penalties(std::span<float> logits) const;
    void mask_stops(std::span<float> logits) const;
    [[nodiscard]] TokenId draw_filtered(std::span<float> logits, std::uint64_t position,
                                        SamplerScratch& scratch) const;

    SamplingParams params_;
    std::vector<TokenId> end_tokens_;
    struct Count {
        TokenId token;
        std::uint32_t in_output;  ///< 0 for tokens that are only in the prompt.
    };
    /// By token. Empty unless a penalty needs it; room for all there will be.
    std::vector<Count> counts_;
    bool has_penalties_ = false;
    std::uint32_t output_tokens_ = 0;
};

/// Log-probabilities of a position from its unchanged logits: the token's own, and the `top` likeliest
/// in descending order, ties by id.
[[nodiscard]] PositionLogprobs position_logprobs(std::span<const float> logits, TokenId token,
                                                 std::uint32_t top, SamplerScratch& scratch);

}  // namespace sluice::engine
