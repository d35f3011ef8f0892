#pragma once

// How requests are told apart in records, metrics, guards and the card: what was asked (kind), how
// long the prompt was (bucket), whether the answer went to a client (role), how it ended (outcome).
// One list of names for all of them; they are part of what users read and query.

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

/// How an attempt ended.
enum class Outcome : std::uint8_t {
    kOk,
    kTimeoutQueue,
    kTimeoutPrefill,
    kTimeoutDecode,
    kClientGone,
    kWorkerLost,
    kInvalidOutput,  ///< It came, but not in the shape that was asked for.
    kRejected,       ///< The client's mistake, or no room.
    kError,
};
inline constexpr int kOutcomes = 9;

/// What was asked for. The later ones win: seeded JSON is `kJsonSchema`.
enum class RequestKind : std::uint8_t { kText, kSeeded, kJsonSchema, kTools };
inline constexpr int kKinds = 4;

/// Prompt tokens in thousands of 1,024; the upper end belongs to the bucket.
enum class LengthBucket : std::uint8_t { kTo16k, kTo64k, kTo256k, kMore };
inline constexpr int kLengthBuckets = 4;

enum class RequestRole : std::uint8_t {
    kAnswer,  ///< Its tokens went to the client.
    kShadow,  ///< A copy; its answer was compared and thrown away.
};

/// Why tokens were computed that had been computed before.
enum class RecomputeCause : std::uint8_t {
    kMiss,      ///< The cache had lost them.
    kHole,      ///< A block inside a cached chain was gone.
    kLoss,      ///< Their worker was lost.
    kFallback,  ///< A hand-over failed and another worker took it.
};

/// "ok", "timeout_queue", ...
[[nodiscard]] std::string_view to_string(Outcome outcome);
/// "text", "seeded", "json_schema", "tools"
[[nodiscard]] std::string_view to_string(RequestKind kind);
/// "<=16k", "16k-64k", "64k-256k", ">256k"
[[nodiscard]] std::string_view to_string(LengthBucket bucket);
/// "answer", "shadow"
[[nodiscard]] std::string_view to_string(RequestRole role);
/// "miss", "hole", "loss", "fallback"
[[nodiscard]] std::string_view to_string(RecomputeCause cause);

// The way back; nullopt for a name that is none.
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view name);
[[nodiscard]] std::optional<RequestKind> parse_kind(std::string_view name);
[[nodiscard]] std::optional<LengthBucket> parse_length_bucket(std::string_view name);
[[nodiscard]] std::optional<RequestRole> parse_role(std::string_view name);
[[nodiscard]] std::optional<RecomputeCause> parse_recompute_cause(std::string_view name);

[[nodiscard]] LengthBucket length_bucket(std::uint64_t prompt_tokens);

/// A failure's row is always kept; only rows of successes may stand for others.
[[nodiscard]] constexpr bool is_failure(Outcome outcome) { return outcome != Outcome::kOk; }

/// Whether the pool could have done better: neither the client's doing nor a success.
[[nodiscard]] constexpr bool is_pools_failure(Outcome outcome) {
    return outcome != Outcome::kOk && outcome != Outcome::kClientGone &&
           outcome != Outcome::kRejected;
}

}  // namespace sluice
