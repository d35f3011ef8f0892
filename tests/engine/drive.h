#pragma once

// Requests for the engine's tests, and engines that are stepped until they have answered.

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace sluice::engine {

/// One over Krill, with a smaller pool unless one is asked for.
[[nodiscard]] std::unique_ptr<Engine> make_engine(EngineOptions options = {},
                                                  const std::string& file = "krill-f16.gguf");

/// What came out of one request.
struct Answer {
    std::vector<TokenId> tokens;
    std::vector<PositionLogprobs> logprobs;
    std::vector<PositionLogprobs> input_logprobs;
    Output last;
    std::size_t outputs = 0;

    [[nodiscard]] bool done() const { return last.finish.has_value(); }
};

/// Sends a request whose outputs are gathered in the returned answer.
std::shared_ptr<Answer> send(Engine& engine, Request request);

/// Steps until nothing is left to do.
void run(Engine& engine);

[[nodiscard]] Request greedy(const std::string& id, std::vector<TokenId> prompt,
                             std::uint32_t tokens = 96);

/// Everything that makes sampling depend on history: penalties, filters, a seed.
[[nodiscard]] Request sampled(const std::string& id, std::vector<TokenId> prompt,
                              std::uint64_t seed);

/// The tokens of a request that has an engine for itself.
[[nodiscard]] std::vector<TokenId> alone(const Request& request, EngineOptions options = {},
                                         const std::string& file = "krill-f16.gguf");

/// A prompt of `count` tokens that means nothing but is ordinary in form.
[[nodiscard]] std::vector<TokenId> long_prompt(std::size_t count, std::uint32_t salt = 0);

}  // namespace sluice::engine
