#pragma once

// From the bytes of a request to what an engine needs: parsed, rendered in the pool's dialect,
// encoded. Pure and thread-safe, so that a long prompt can be prepared beside the event loop.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/inbound_request.h"
#include "protocol/conversation.h"
#include "protocol/errors.h"
#include "protocol/generation_options.h"
#include "protocol/output_parser.h"
#include "text/tokenizer.h"

namespace sluice::gateway {

struct PreparedRequest {
    Endpoint endpoint = Endpoint::kChat;
    protocol::GenerationOptions options;
    std::vector<TokenId> prompt;
    std::size_t own_from = 0;  ///< protocol::PromptTokens::own_from
    protocol::ParseOptions parse;
    protocol::Thinking thinking = protocol::Thinking::kOff;
};

/// What a pool says about the requests it takes.
struct PoolProfile {
    std::string model;    ///< The name clients use.
    std::string dialect;  ///< How conversations are written: "deepseek-v4.1".
    protocol::Thinking thinking = protocol::Thinking::kOff;  ///< Where the request is silent.
    std::uint64_t context_tokens = 0;  ///< Longer prompts are refused before they are encoded.
};

class RequestPreparer {
public:
    RequestPreparer(text::Tokenizer tokenizer, PoolProfile profile);

    /// Whether the model is one that is served here was asked before.
    [[nodiscard]] std::expected<PreparedRequest, protocol::ApiError> prepare(
        Endpoint endpoint, std::string_view body) const;

    [[nodiscard]] const text::Tokenizer& tokenizer() const { return tokenizer_; }
    [[nodiscard]] const PoolProfile& profile() const { return profile_; }

private:
    using Prepared = std::expected<PreparedRequest, protocol::ApiError>;

    [[nodiscard]] Prepared prepare_chat(std::string_view body) const;
    [[nodiscard]] Prepared prepare_completion(std::string_view body) const;
    [[nodiscard]] std::expected<void, protocol::ApiError> check_bytes(std::size_t bytes) const;
    [[nodiscard]] std::expected<void, protocol::ApiError> check_ids(
        const protocol::GenerationOptions& options, std::span<const TokenId> prompt) const;

    text::Tokenizer tokenizer_;
    PoolProfile profile_;
};

/// How many tokens the answer may have in a context of `context_tokens`: what the request says, or
/// DeepSeek's own defaults (8,192; 65,536 with thinking) as far as they fit. An error names both
/// numbers.
[[nodiscard]] std::expected<std::uint32_t, protocol::ApiError> resolve_max_tokens(
    const PreparedRequest& request, std::uint64_t context_tokens);

}  // namespace sluice::gateway
