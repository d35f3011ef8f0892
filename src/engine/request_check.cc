#include "engine/request_check.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string_view>

#include "engine/engine.h"

namespace sluice::engine {
namespace {

bool in_vocabulary(TokenId token, std::uint32_t vocabulary) {
    return token >= 0 && static_cast<std::uint32_t>(token) < vocabulary;
}

Result<void> check_tokens(std::span<const TokenId> tokens, std::uint32_t vocabulary,
                          std::string_view name) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (in_vocabulary(tokens[i], vocabulary)) continue;
        return std::unexpected(
            Error(ErrorCode::kOutOfRange,
                  fmt::format("token id {} is not in the vocabulary of {}", tokens[i], vocabulary),
                  fmt::format("{}[{}]", name, i)));
    }
    return {};
}

}  // namespace

Result<void> check_options(const EngineOptions& options) {
    const auto bad = [](std::string_view name, std::size_t value, std::string_view what) {
        return std::unexpected(Error(ErrorCode::kOutOfRange, fmt::format("{}, not {}", what, value),
                                     std::string(name)));
    };
    if (options.threads > 256) return bad("threads", options.threads, "must be at most 256");
    if (options.running_max < 1 || options.running_max > 4096)
        return bad("running_max", options.running_max, "must be 1 to 4096");
    if (options.step_tokens < options.running_max)
        return bad("step_tokens", options.step_tokens, "must be at least running_max");
    if (options.prefill_chunk < 1)
        return bad("prefill_chunk", options.prefill_chunk, "must be at least 1");
    if (options.step_time.count() < 1)
        return bad("step_time", static_cast<std::size_t>(options.step_time.count()),
                   "must be at least 1 ms");
    if (options.pool_tokens < Engine::kBlockTokens || options.pool_tokens > (std::size_t{1} << 32))
        return bad("pool_tokens", options.pool_tokens, "must be 64 to 2^32");
    return {};
}

Result<void> check_request(const Request& request, std::uint32_t vocabulary,
                           std::size_t context_tokens) {
    const SamplingParams& sampling = request.sampling;
    if (request.input_ids.empty())
        return std::unexpected(Error::invalid("the prompt has no tokens", "input_ids"));
    if (sampling.max_new_tokens == 0)
        return std::unexpected(Error::invalid("must be at least 1", "max_new_tokens"));
    if (request.input_ids.size() + sampling.max_new_tokens > context_tokens) {
        return std::unexpected(
            Error(ErrorCode::kOutOfRange,
                  fmt::format("the prompt has {} tokens and max_new_tokens is {}, together more "
                              "than the context of {}",
                              request.input_ids.size(), sampling.max_new_tokens, context_tokens),
                  "max_new_tokens"));
    }
    if (request.resume_output_ids.size() >= sampling.max_new_tokens)
        return std::unexpected(Error::invalid("nothing is left to generate", "resume_output_ids"));
    if (!(sampling.temperature >= 0.0F) || !std::isfinite(sampling.temperature))
        return std::unexpected(Error::invalid("must be a number from 0", "temperature"));
    if (!(sampling.repetition_penalty > 0.0F))
        return std::unexpected(Error::invalid("must be above 0", "repetition_penalty"));
    if (auto ok = check_tokens(request.input_ids, vocabulary, "input_ids"); !ok) return ok;
    if (auto ok = check_tokens(request.resume_output_ids, vocabulary, "resume_output_ids"); !ok)
        return ok;
    if (auto ok = check_tokens(sampling.stop_token_ids, vocabulary, "stop_token_ids"); !ok)
        return ok;
    for (const auto& [token, bias] : sampling.logit_bias) {
        if (!in_vocabulary(token, vocabulary) || !std::isfinite(bias))
            return std::unexpected(
                Error(ErrorCode::kOutOfRange,
                      fmt::format("token id {} is not in the vocabulary of {}", token, vocabulary),
                      "logit_bias"));
    }
    return {};
}

}  // namespace sluice::engine
