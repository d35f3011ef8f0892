#pragma once

// What goes into the engine and what comes out, as plain data.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sampling_params.h"
#include "engine/block_owner.h"
#include "kv/key_chain.h"

namespace sluice::engine {

struct Request {
    std::string id;  ///< Unique among live requests.
    std::vector<TokenId> input_ids;
    SamplingParams sampling;
    std::vector<TokenId>
        resume_output_ids;  ///< Taken as already drawn; sampling goes on after them.
    bool return_logprobs = false;
    std::uint32_t top_logprobs = 0;
    std::int64_t logprob_start = -1;  ///< First input position whose log-probability is wanted.
    std::int32_t priority = 0;        ///< Higher is admitted first.
    kv::Salt salt;                    ///< Prefixes are shared only between equal salts.
    BlockOwner owner;                 ///< Of the blocks that it computes.
    /// Ends after one new token, with the blocks of all tokens before it held: Output::held.
    bool hand_over = false;
    /// So many leading tokens were computed elsewhere and put into the pool (BlockDesk::keep), the last
    /// of them in a partial block. What isn't there any more is computed.
    std::size_t imported_tokens = 0;
};

struct TokenLogprob {
    TokenId token = 0;
    float logprob = 0.0F;
    bool operator==(const TokenLogprob&) const = default;
};

struct PositionLogprobs {
    TokenLogprob chosen;
    std::vector<TokenLogprob> top;
    bool operator==(const PositionLogprobs&) const = default;
};

enum class Finish : std::uint8_t { kStop, kLength, kAborted, kFailed, kHandedOver };

struct HeldSequence;

/// Progress of one request after a step. Without tokens it only says that prefill moved on.
struct Output {
    std::vector<TokenId> tokens;
    std::vector<PositionLogprobs> logprobs;        ///< One per token if asked for.
    std::vector<PositionLogprobs> input_logprobs;  ///< With the first token if asked for.
    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;
    std::uint64_t completion_tokens = 0;  ///< Those of resume_output_ids included.
    std::uint64_t computed_tokens = 0;
    std::uint64_t drafted = 0;   ///< Tokens that were guessed and checked so far.
    std::uint64_t accepted = 0;  ///< Those that the sampler picked, too.
    std::optional<Finish> finish;
    std::optional<TokenId> matched_stop;
    std::string message;                       ///< For kFailed.
    std::shared_ptr<const HeldSequence> held;  ///< For kHandedOver.
};

/// Called on the engine's thread, after the step that caused it; must not block.
using OutputSink = std::function<void(const Output&)>;

}  // namespace sluice::engine
