#pragma once

// What came of giving one request to two pools.
//
// Not everything can be compared: a text that was drawn at random differs from the next one for no
// fault of either pool. Text and tokens count only where the request fixes them (greedy, or seeded on
// pools that honour the seed); finish reason, JSON, tools and errors always do.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sampling_params.h"

namespace sluice::traffic {

struct ToolCall {
    std::string name;
    std::string arguments;  ///< JSON, as the model wrote it.
    bool operator==(const ToolCall&) const = default;
};

/// One pool's answer.
struct Answer {
    std::string text;
    std::string reasoning;
    std::vector<ToolCall> tool_calls;
    std::string finish_reason;
    std::string error;  ///< Its class, for example "worker_lost"; empty for a complete answer.
    std::vector<TokenId> output_ids;  ///< Of native pools.
    std::optional<std::chrono::nanoseconds> ttft;
    std::optional<std::chrono::nanoseconds> tbt;  ///< Mean.
    bool cut = false;  ///< Not all of it was kept: what is compared is a beginning.
};

/// What the request allows to be compared.
struct Comparable {
    bool text = false;    ///< Both pools must give the same text.
    bool tokens = false;  ///< And the same tokens, by the same vocabulary.
    bool json = false;    ///< The text must be JSON.
};

struct Comparison {
    /// In what they differ: "error_class", "finish_reason", "text", "reasoning", "tokens", "json",
    /// "tool_name", "tool_arguments", "logprobs". Empty if in nothing.
    std::vector<std::string> differences;
    std::optional<std::uint64_t> first_difference;  ///< Index of the first token that differs.
    std::optional<double> logprob_delta;            ///< Largest; set by `add_logprobs`.
    // Candidate minus baseline; absent where one of them has none.
    std::optional<std::chrono::nanoseconds> ttft_delta;
    std::optional<std::chrono::nanoseconds> tbt_delta;

    [[nodiscard]] bool same() const { return differences.empty(); }
    bool operator==(const Comparison&) const = default;
};

[[nodiscard]] Comparison compare(const Answer& baseline, const Answer& candidate,
                                 const Comparable& comparable);

/// Teacher forcing: both pools' log-probabilities of the tokens of one answer, the baseline's, in the
/// same order. "logprobs" differ if one is further from the other than `tolerance` (in nats), or if
/// their numbers differ. A token that is impossible for one of them only counts as 100 nats away.
void add_logprobs(Comparison& comparison, const std::vector<float>& baseline,
                  const std::vector<float>& candidate, double tolerance);

/// Whether `text` is one JSON value.
[[nodiscard]] bool is_json(std::string_view text);

}  // namespace sluice::traffic
