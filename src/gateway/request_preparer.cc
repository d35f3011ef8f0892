#include "gateway/request_preparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gateway/model_vocabulary.h"
#include "protocol/chat_request.h"
#include "protocol/completion_request.h"
#include "protocol/prompt_tokens.h"

namespace sluice::gateway {
namespace {

using protocol::ApiError;
using protocol::ApiErrorCode;

// https://api-docs.deepseek.com: the service's own defaults.
constexpr std::uint64_t kDefaultTokens = 8'192;
constexpr std::uint64_t kDefaultThinkingTokens = 65'536;

std::unexpected<ApiError> refuse(const Error& error) {
    return std::unexpected(protocol::to_api_error(error));
}

}  // namespace

RequestPreparer::RequestPreparer(text::Tokenizer tokenizer, PoolProfile profile)
    : tokenizer_(std::move(tokenizer)), profile_(std::move(profile)) {}

RequestPreparer::Prepared RequestPreparer::prepare(Endpoint endpoint, std::string_view body) const {
    return endpoint == Endpoint::kChat ? prepare_chat(body) : prepare_completion(body);
}

// A text has at least bytes / longest token tokens: what can't fit is refused before it costs time.
std::expected<void, ApiError> RequestPreparer::check_bytes(std::size_t bytes) const {
    const std::uint64_t least = bytes / std::max<std::size_t>(tokenizer_.longest_token(), 1);
    if (least <= profile_.context_tokens) return {};
    return std::unexpected(protocol::context_length_exceeded(least, 0, profile_.context_tokens));
}

std::expected<void, ApiError> RequestPreparer::check_ids(const protocol::GenerationOptions& options,
                                                         std::span<const TokenId> prompt) const {
    const std::size_t vocabulary = tokenizer_.vocabulary_size();
    const auto bad = [&](TokenId token) {
        return token < 0 || static_cast<std::size_t>(token) >= vocabulary;
    };
    const auto error = [&](TokenId token, std::string place) {
        return std::unexpected(
            ApiError{.code = ApiErrorCode::kInvalidRequest,
                     .message = fmt::format("token id {} is not in the model's vocabulary of {}",
                                            token, vocabulary),
                     .param = std::move(place)});
    };
    for (std::size_t i = 0; i < prompt.size(); ++i)
        if (bad(prompt[i])) return error(prompt[i], fmt::format("prompt[{}]", i));
    for (const auto& [token, bias] : options.sampling.logit_bias)
        if (bad(token)) return error(token, "logit_bias");
    for (std::size_t i = 0; i < options.sampling.stop_token_ids.size(); ++i) {
        const TokenId token = options.sampling.stop_token_ids[i];
        if (bad(token)) return error(token, fmt::format("stop_token_ids[{}]", i));
    }
    return {};
}

RequestPreparer::Prepared RequestPreparer::prepare_chat(std::string_view body) const {
    auto request = protocol::parse_chat_request(
        body, {.thinking = profile_.thinking, .model = profile_.model});
    if (!request) return refuse(request.error());
    const auto prompt = render(profile_.dialect, request->conversation);
    if (!prompt) return refuse(prompt.error());
    std::size_t bytes = 0;
    for (const protocol::Segment& segment : prompt->segments) bytes += segment.text.size();
    if (auto ok = check_bytes(bytes); !ok) return std::unexpected(ok.error());
    auto tokens = protocol::tokenize_prompt(*prompt, tokenizer_);
    if (!tokens) return refuse(tokens.error());
    if (auto ok = check_ids(request->options, tokens->ids); !ok) return std::unexpected(ok.error());
    PreparedRequest prepared{.endpoint = Endpoint::kChat,
                             .options = std::move(request->options),
                             .prompt = std::move(tokens->ids),
                             .own_from = tokens->own_from,
                             .thinking = request->conversation.thinking};
    prepared.parse = {
        .start = prompt->start, .stop = prepared.options.stop, .markup = protocol::Markup::kChat};
    return prepared;
}

RequestPreparer::Prepared RequestPreparer::prepare_completion(std::string_view body) const {
    auto request = protocol::parse_completion_request(body, {.model = profile_.model});
    if (!request) return refuse(request.error());
    PreparedRequest prepared{.endpoint = Endpoint::kCompletions,
                             .options = std::move(request->options)};
    if (auto* ids = std::get_if<std::vector<TokenId>>(&request->prompt)) {
        prepared.prompt = std::move(*ids);
    } else {
        const auto& text = std::get<std::string>(request->prompt);
        if (auto ok = check_bytes(text.size()); !ok) return std::unexpected(ok.error());
        if (request->add_special_tokens && tokenizer_.bos())
            prepared.prompt.push_back(*tokenizer_.bos());
        tokenizer_.encode(text, prepared.prompt);
    }
    if (prepared.prompt.empty()) {
        return std::unexpected(ApiError{.code = ApiErrorCode::kInvalidRequest,
                                        .message = "the prompt has no tokens",
                                        .param = "prompt"});
    }
    if (auto ok = check_ids(prepared.options, prepared.prompt); !ok)
        return std::unexpected(ok.error());
    prepared.parse = {.stop = prepared.options.stop, .markup = protocol::Markup::kNone};
    return prepared;
}

std::expected<std::uint32_t, ApiError> resolve_max_tokens(const PreparedRequest& request,
                                                          std::uint64_t context_tokens) {
    const std::uint64_t prompt = request.prompt.size();
    const std::uint64_t asked = request.options.max_tokens.value_or(1);
    if (prompt + asked > context_tokens) {
        ApiError error = protocol::context_length_exceeded(
            prompt, request.options.max_tokens.value_or(0), context_tokens);
        const bool chat = request.endpoint == Endpoint::kChat;
        error.param = prompt < context_tokens ? "max_tokens" : chat ? "messages" : "prompt";
        return std::unexpected(std::move(error));
    }
    if (request.options.max_tokens) return *request.options.max_tokens;
    const std::uint64_t usual =
        request.thinking == protocol::Thinking::kOn ? kDefaultThinkingTokens : kDefaultTokens;
    return static_cast<std::uint32_t>(std::min(usual, context_tokens - prompt));
}

}  // namespace sluice::gateway
