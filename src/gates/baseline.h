#pragma once

// A stored baseline: prompts, the outputs that are held to be right, and the versions that made them. It
// is a file of JSON lines, so that it can be read, cut and kept in version control: a header, then a
// row a prompt.
//
// Outputs come from a running pool, or from an offline run of the candidate's clean build: rows
// {"id","text","output_ids"?,"finish_reason","seed"?} as `sluice run --output` writes them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gates/gate_report.h"

namespace sluice::gates {

/// What is asked: `messages` (a chat) or `prompt` (a completion), as JSON text.
struct BaselinePrompt {
    std::string id;        ///< As JSON; a row without one has its index.
    std::string messages;  ///< A JSON array, or empty.
    std::string prompt;    ///< Plain text; used if there are no messages.
    /// As JSON object text, in the names of the engine port: {"max_new_tokens","temperature","seed"}.
    /// Always holds a seed.
    std::string sampling;
};

struct BaselineOutput {
    std::string id;
    std::string text;
    std::vector<std::int64_t> output_ids;  ///< Empty if the run did not say.
    std::string finish_reason;
    bool operator==(const BaselineOutput&) const = default;
};

struct BaselineRow {
    BaselinePrompt prompt;
    BaselineOutput output;
};

struct Baseline {
    std::string name;
    std::string created;   ///< "2026-11-30T14:05:00Z"
    std::string model;     ///< What the answers came from.
    std::string versions;  ///< A JSON object of what is known; "{}" at least.
    std::vector<BaselineRow> rows;
};

/// One prompt a line, as `sluice run --input` takes them, but without input_ids. A row without a seed
/// gets one from its index, so that every answer can be asked for again.
[[nodiscard]] Result<std::vector<BaselinePrompt>> parse_prompts(std::string_view text,
                                                                const std::string& name);
/// One output a line. A row with an "error" is an error: a failed run is no baseline.
[[nodiscard]] Result<std::vector<BaselineOutput>> parse_outputs(std::string_view text,
                                                                const std::string& name);
/// By id; an error names a prompt without an output, and an output without a prompt.
[[nodiscard]] Result<std::vector<BaselineRow>> join(std::vector<BaselinePrompt> prompts,
                                                    std::vector<BaselineOutput> outputs);

/// A JSON object, as a baseline keeps what is known of versions: on one line.
[[nodiscard]] Result<std::string> parse_versions(std::string_view text);

[[nodiscard]] std::string to_json_lines(const Baseline& baseline);
[[nodiscard]] Result<Baseline> parse_baseline(std::string_view text, const std::string& name);

/// An item for every row that differs in text, token ids or finish reason (the first `shown` of them),
/// and one that sums up. Fails if fewer than `min_equal` of the rows are equal, 0 to 1.
[[nodiscard]] std::vector<GateItem> compare(const Baseline& baseline,
                                            const std::vector<BaselineOutput>& outputs,
                                            const std::string& subject, double min_equal,
                                            std::size_t shown = 10);

/// The request of a row for /chat/completions or /completions; streamed, with its usage.
[[nodiscard]] std::string request_body(const BaselinePrompt& prompt, std::string_view model);
/// "/chat/completions" or "/completions"
[[nodiscard]] std::string_view request_path(const BaselinePrompt& prompt);

}  // namespace sluice::gates
