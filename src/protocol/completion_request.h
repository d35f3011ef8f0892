#pragma once

// POST /v1/completions, the request: a prompt as text or token ids, no conversation. As strict as
// chat (chat_request.h).

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "protocol/generation_options.h"

namespace sluice::protocol {

/// What the protocol says where the request doesn't.
inline constexpr std::uint32_t kDefaultCompletionTokens = 16;

struct CompletionDefaults {
    std::string model;  ///< Empty: a request must name its model.
};

struct CompletionRequest {
    GenerationOptions options;  ///< `max_tokens` is always set.
    /// Text is to be encoded as plain characters; ids are not checked against a vocabulary.
    std::variant<std::string, std::vector<TokenId>> prompt;
    bool add_special_tokens = true;  ///< Whether a text prompt gets the model's BOS.
};

/// Errors as in `parse_chat_request`. Several prompts in one request are `kUnsupported`.
[[nodiscard]] Result<CompletionRequest> parse_completion_request(
    std::string_view body, const CompletionDefaults& defaults = {});

}  // namespace sluice::protocol
