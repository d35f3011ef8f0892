#pragma once

// The engine port: tokens in, tokens out. Names on the wire follow SGLang's native API where it has
// them. POST /generate takes a GenerateRequest; the answer is a stream of GenerateFrames, one SSE
// event each, then `data: [DONE]`.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/retention.h"
#include "base/sampling_params.h"
#include "port/kv_decision.h"

namespace sluice::port {

/// Every request id has this many characters: SGLang aborts by prefix, so none may be another's.
inline constexpr std::size_t kRidLength = 32;

/// What is asked of the worker. A split request is prefilled by one and decoded by another.
enum class Phase : std::uint8_t {
    kFull,
    kPrefill,  ///< Ends after one new token; the blocks are held for whoever decodes.
    kDecode,   ///< Starts from blocks that others hold.
};

/// "full", "prefill" or "decode".
[[nodiscard]] std::string_view to_string(Phase phase);

/// Blocks of one sequence that a worker holds.
struct KvSource {
    std::string url;  ///< Of the worker: "http://host:port".
    /// kRidLength lower-case hexadecimal digits; empty: it has them, but holds them for nobody.
    std::string hold;
    std::vector<Sha256Digest> keys;  ///< Of full blocks, in order from the first token on.
    std::uint32_t tail_tokens = 0;   ///< In the block after them; 0 if there is none.
    bool operator==(const KvSource&) const = default;
};

/// How a request's blocks are named, kept and found.
struct KvTerms {
    std::string tenant;                      ///< Whose they are.
    Retention retention = Retention::kChat;  ///< How long they are kept outside of the pool.
    std::string salt;                        ///< Keeps prefix reuse apart between tenants,
    std::string own_salt;                    ///< and, if not empty, between users or sessions
    std::uint64_t own_from = 0;              ///< from this token on.
    /// Where they may be had. What can't be had is computed.
    std::vector<KvSource> sources;
    bool operator==(const KvTerms&) const = default;
};

struct GenerateRequest {
    std::string rid;                 ///< kRidLength lower-case hexadecimal digits.
    std::vector<TokenId> input_ids;  ///< At least one.
    SamplingParams sampling_params;
    bool stream = true;
    bool return_logprob = false;
    std::uint32_t top_logprobs_num = 0;
    /// First position of `input_ids` whose log-probability is wanted; -1 for none.
    std::int64_t logprob_start_len = -1;
    std::int32_t priority = 0;  ///< Higher runs first.

    // Below "sluice" on the wire.
    Phase phase = Phase::kFull;
    KvTerms kv;
    std::optional<std::uint32_t> dp_rank;  ///< The least loaded one if it is absent.
    std::vector<TokenId>
        resume_output_ids;          ///< Already given to the client; generation goes on after them.
    std::uint64_t deadline_ms = 0;  ///< From arrival; 0 is none.

    bool operator==(const GenerateRequest&) const = default;
};

struct TokenLogprob {
    TokenId token = 0;
    float logprob = 0.0F;  ///< Minus infinity for a probability of zero; null on the wire.
    bool operator==(const TokenLogprob&) const = default;
};

/// One position: the token that stands there and the likeliest ones, in descending order.
struct PositionLogprobs {
    TokenLogprob chosen;
    std::vector<TokenLogprob> top;
    bool operator==(const PositionLogprobs&) const = default;
};

enum class FinishType : std::uint8_t { kStop, kLength, kAbort, kError };

struct FinishReason {
    FinishType type = FinishType::kStop;
    std::optional<TokenId> matched;  ///< The stop token, which is the last of `output_ids`.
    std::string message;             ///< For kAbort and kError.
    std::string code{};              ///< For kError: one of port_error.h, or empty.
    bool operator==(const FinishReason&) const = default;
};

/// The end of a prefill: its first token is in `output_ids`, its blocks are held for whoever decodes.
struct KvHandover {
    KvSource source;  ///< `url` is empty if the worker doesn't know how others reach it.
    std::uint64_t hold_until_ms = 0;  ///< From this frame on, as deadline_ms is from arrival.
    bool operator==(const KvHandover&) const = default;
};

/// What happened since the last frame. Without tokens it is a heartbeat.
struct GenerateFrame {
    std::string rid;
    std::vector<TokenId> output_ids;                ///< New ones only.
    std::vector<PositionLogprobs> output_logprobs;  ///< One per output id if asked for.
    std::vector<PositionLogprobs> input_logprobs;  ///< On the first frame with tokens if asked for.
    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;  ///< Prompt tokens not computed by this request.
    std::map<std::string, std::uint64_t>
        cached_tokens_by_source;          ///< "pool", "peer", later "dram", ...
    std::uint64_t completion_tokens = 0;  ///< In all, those of resume_output_ids included.
    std::uint64_t computed_tokens = 0;    ///< Grows while a prefill runs: that is progress.
    std::uint64_t drafted = 0;
    std::uint64_t accepted = 0;
    std::optional<FinishReason> finish_reason;
    std::optional<KvHandover> kv;           ///< Ends the leg in place of a finish reason.
    std::optional<KvDecision> kv_decision;  ///< On the first frame with tokens, if there was one.

    bool operator==(const GenerateFrame&) const = default;
};

[[nodiscard]] std::string to_json(const GenerateRequest& request);
[[nodiscard]] std::string to_json(const GenerateFrame& frame);

/// Errors name the field. Unknown fields are ignored, wrong types are not.
[[nodiscard]] Result<GenerateRequest> parse_generate_request(std::string_view json);
[[nodiscard]] Result<GenerateFrame> parse_generate_frame(std::string_view json);

}  // namespace sluice::port
