#pragma once

// Text of a given length in tokens, without a tokenizer: common words, as many as a first request
// showed to be needed. Requests that share blocks in a trace share their text in front.

#include <string>

#include "trace/load_plan.h"

namespace sluice::trace {

class PromptMaker {
public:
    /// `words_per_token` of the model under test; see `calibrated`.
    explicit PromptMaker(double words_per_token = 0.75) : words_per_token_(words_per_token) {}

    /// From a prompt of `words` words that `tokens` prompt tokens were counted for, template
    /// included.
    [[nodiscard]] static PromptMaker calibrated(std::size_t words, std::size_t tokens);

    [[nodiscard]] std::string prompt(const PlannedRequest& request) const;
    /// `count` words that no other seed gives.
    [[nodiscard]] static std::string words(std::uint64_t seed, std::size_t count);

private:
    double words_per_token_;
};

}  // namespace sluice::trace
