#pragma once

// One row per attempt to answer a request: what the client got, and one more for every pool that was
// given a copy. Everything the card, the guards and `sluice ctl` say is computed from these rows.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/latency_sketch.h"
#include "base/request_class.h"
#include "port/kv_decision.h"
#include "record/version_manifest.h"

namespace sluice::record {

/// One worker's part in a request.
struct Leg {
    std::string phase = "full";  ///< "full", "encode", "prefill", "decode"
    std::string pool;
    std::string worker;       ///< Its address.
    std::string fingerprint;  ///< digest() of its manifest.
    /// From its start to its end: for this long it kept a place on the worker busy.
    std::chrono::microseconds held{0};

    bool operator==(const Leg&) const = default;
};

/// What came out when this attempt's answer was laid beside another's.
struct Comparison {
    std::string pool;  ///< Whose answer it was compared with; the row's own pool in an A/A pair.
    /// In what they differ: "text", "tokens", "finish_reason", "json", "tool_name",
    /// "tool_arguments", "error_class", ...; empty if in nothing.
    std::vector<std::string> differences;
    /// Index of the first token that differs, where tokens were compared.
    std::optional<std::uint64_t> first_difference;
    /// Largest distance of two log-probabilities of one token, teacher-forced.
    std::optional<double> logprob_delta;
    /// This attempt's minus the other's: times to the first token, from dispatch, and mean times
    /// between tokens; absent where one of them has none.
    std::optional<std::chrono::microseconds> ttft_delta;
    std::optional<std::chrono::microseconds> tbt_delta;

    bool operator==(const Comparison&) const = default;
};

struct RequestRow {
    std::string rid;
    /// The client's name for the request, else its rid; a copy has the one of its original.
    std::string request_id;
    std::int64_t time_ms = 0;  ///< Of its arrival, since 1970 in UTC.
    std::string tenant;
    std::string pool;  ///< Empty if it ended before one was chosen.
    RequestRole role = RequestRole::kAnswer;
    RequestKind kind = RequestKind::kText;

    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;
    std::map<std::string, std::uint64_t> cached_by_source;
    /// How the worker that prefilled it came by the blocks that were cached elsewhere.
    std::optional<port::KvDecision> kv_decision;
    std::uint64_t completion_tokens = 0;

    std::optional<std::chrono::microseconds> ttft;  ///< Absent if no token came.
    LatencySketch gaps;                             ///< Times between tokens.
    std::chrono::microseconds duration{0};

    Outcome outcome = Outcome::kOk;
    std::string error;  ///< The code that the client got, for example "queue_full".
    std::uint32_t resumes = 0;
    std::uint32_t retries = 0;
    std::uint64_t recomputed_tokens = 0;
    std::optional<RecomputeCause> recompute_cause;

    std::string schema_digest;              ///< Empty if no schema was given.
    std::uint64_t device_memory_bytes = 0;  ///< 0 is unknown.
    std::string fingerprint;                ///< What the client got as `system_fingerprint`.
    std::string trace_id;                   ///< Of the W3C trace it belongs to.
    std::vector<Leg> legs;                  ///< In the order of their start.
    std::optional<Comparison> comparison;

    /// How many requests this row stands for. Above 1 only if successes came faster than they could
    /// be written: the row is one of them, drawn evenly.
    std::uint64_t weight = 1;

    [[nodiscard]] LengthBucket bucket() const { return length_bucket(prompt_tokens); }
    /// Of all legs in the row's own pool: its share of what the pool cost.
    [[nodiscard]] std::chrono::microseconds held() const;

    bool operator==(const RequestRow&) const = default;
};

/// One line of `sluice ctl records`, without its newline. `cost` is the row's share of its pool's
/// bill (record/cost.h); nullopt leaves it out, as the store does.
[[nodiscard]] std::string to_json(const RequestRow& row, std::optional<double> cost = std::nullopt);

struct ParsedRow {
    RequestRow row;
    std::optional<double> cost;
};

/// The way back. Unknown keys are ignored; an unknown outcome, kind or role is an error with its
/// place, because guessing one would falsify the counts.
[[nodiscard]] Result<ParsedRow> parse_row(std::string_view json);

}  // namespace sluice::record
