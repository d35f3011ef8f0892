#pragma once

// What a checkpoint says its model is, read once and checked as a whole: an engine that starts with
// these numbers never divides by zero, never allocates by an absurd size, and never guesses.
//
// Invariant of a value returned by read_hyper_parameters: every count is within its bound, nope +
// rope, kv_rank + rope and layers + mtp_layers agree with the file, experts_used <= expert_count,
// and token ids are below `vocabulary`. Whether each tensor is there with the right shape is the
// engine's business.

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/sampling_params.h"
#include "checkpoint/gguf_file.h"

namespace sluice::checkpoint {

/// How router logits become scores.
enum class ExpertGating : std::uint8_t { kSoftmax, kSigmoid };

enum class RopeScaling : std::uint8_t { kNone, kYarn };

/// The DeepSeek V3 family (`general.architecture` = "deepseek2"). Sizes are in elements.
struct HyperParameters {
    std::string name;  ///< `general.name`; "unnamed" if absent.
    std::uint32_t vocabulary = 0;
    std::uint64_t context_length = 0;  ///< Tokens.
    std::uint32_t width = 0;
    std::uint32_t layers = 0;  ///< Without the MTP layers, which follow them in the file.
    std::uint32_t mtp_layers = 0;

    std::uint32_t dense_layers = 0;  ///< The first ones; the rest are MoE.
    std::uint32_t dense_ff = 0;

    std::uint32_t heads = 0;
    std::uint32_t q_rank = 0;  ///< 0: queries are projected directly (`attn_q`).
    std::uint32_t kv_rank = 0;
    std::uint32_t nope = 0;   ///< Key and query elements a head without position.
    std::uint32_t rope = 0;   ///< Rotated elements; even.
    std::uint32_t value = 0;  ///< Value elements a head.

    std::uint32_t expert_count = 0;  ///< 0 for a model without MoE layers.
    std::uint32_t experts_used = 0;
    std::uint32_t shared_experts = 0;
    std::uint32_t expert_ff =
        0;  ///< Of one expert; the shared ones are one matrix of this times their number.
    float expert_weights_scale = 1.0F;
    bool expert_weights_norm = false;
    ExpertGating gating = ExpertGating::kSoftmax;
    std::uint32_t expert_groups = 1;  ///< 1: no group-limited choice.
    std::uint32_t expert_groups_used = 1;

    float rope_theta = 10'000.0F;
    RopeScaling rope_scaling = RopeScaling::kNone;
    float rope_factor = 1.0F;
    std::uint64_t rope_original_context = 0;  ///< Tokens; 0 without YaRN.
    /// GGUF's `rope.scaling.yarn_log_multiplier`: 0.1 times the family's mscale_all_dim.
    float yarn_log_multiplier = 0.0F;
    float rms_eps = 0.0F;

    std::optional<TokenId> bos;
    std::optional<TokenId> eos;
    std::optional<TokenId> pad;
    std::string dialect;          ///< `sluice.dialect`; empty if absent.
    std::string tokenizer_model;  ///< "gpt2"; empty if absent.
    std::string tokenizer_pre;    ///< "deepseek-v3"; empty if absent.

    [[nodiscard]] std::uint32_t key_length() const { return nope + rope; }
    /// MTP layers count on from `layers`.
    [[nodiscard]] bool is_moe_layer(std::uint32_t layer) const {
        return expert_count > 0 && layer >= dense_layers;
    }

    bool operator==(const HyperParameters&) const = default;
};

/// The error's place is the GGUF key; its message gives the value and what would be right.
[[nodiscard]] Result<HyperParameters> read_hyper_parameters(const GgufFile& file);

}  // namespace sluice::checkpoint
