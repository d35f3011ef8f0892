#pragma once

// Rows of a batch run: a JSON object in, a request for the engine out; an answer in, a JSON line out.
// A single prompt is a row too, so both take the same path. Lines come from strangers' scripts: a row
// is good or has an error that names the field, and a misspelt field is never silently ignored.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run_answer.h"
#include "app/run_model.h"
#include "base/error.h"
#include "protocol/conversation.h"

namespace sluice::app {

enum class PromptForm : std::uint8_t {
    kChat,  ///< A user's message, in the model's dialect.
    kRaw,   ///< As written: control tokens are recognised, no BOS is added.
};

/// What holds where a row is silent.
struct RunDefaults {
    PromptForm form = PromptForm::kChat;
    std::string system;  ///< System text of prompts in chat form; empty for none.
    protocol::Thinking thinking = protocol::Thinking::kOff;
    std::optional<std::uint32_t> max_tokens;  ///< Else kDefaultTokens, or what the context holds.
    float temperature = 1.0F;
    float top_p = 1.0F;
    std::int32_t top_k = 0;
    float min_p = 0.0F;
};

inline constexpr std::uint32_t kDefaultTokens = 512;

struct RowRequest {
    engine::Request request;  ///< Without id.
    std::vector<std::string> stop;
    bool has_seed = false;
};

struct Row {
    std::string id;  ///< As JSON: the row's own, or its index.
    Result<RowRequest> request;
};

class RowParser {
public:
    /// Both outlive the parser.
    RowParser(const RunModel& model, const RunDefaults& defaults)
        : model_(model), defaults_(defaults) {}

    /// `index` counts the rows of the file from 0.
    [[nodiscard]] Row parse(std::string_view line, std::uint64_t index) const;

private:
    const RunModel& model_;
    const RunDefaults& defaults_;
};

/// `text` as the row that asks it.
[[nodiscard]] Result<std::string> prompt_row(std::string_view text);

/// A new seed from the system's entropy, exact in every JSON reader (below 2^53).
[[nodiscard]] std::uint64_t draw_seed();

/// The seed of the row `id`: the same in every run with `run_seed`, however many rows were done
/// before.
[[nodiscard]] std::uint64_t row_seed(std::uint64_t run_seed, std::string_view id);

/// `{"id","text","output_ids","finish_reason","seed","usage"}` or, if the engine failed, an error row.
[[nodiscard]] std::string answer_row(std::string_view id, std::uint64_t seed,
                                     const RunAnswer& answer);
/// `{"id","error":{"message","type","param","code"}}`
[[nodiscard]] std::string error_row(std::string_view id, const Error& error);

}  // namespace sluice::app
