#pragma once

// A rendered prompt as token ids: where the promise of prompt.h is kept. Control segments take the
// tokenizer's control door, text segments the other one, and nothing else decides which.

#include <vector>

#include "base/error.h"
#include "base/sampling_params.h"
#include "protocol/prompt.h"
#include "text/tokenizer.h"

namespace sluice::protocol {

struct PromptTokens {
    std::vector<TokenId> ids;
    /// The first of them that holds something of Prompt::own_segment; their number if none does.
    std::size_t own_from = 0;
};

/// `kUnsupported` for a control token that the vocabulary lacks, named, and for images. An optional
/// control token that is missing becomes part of the text around it.
[[nodiscard]] Result<PromptTokens> tokenize_prompt(const Prompt& prompt,
                                                   const text::Tokenizer& tokenizer);

/// Its ids alone.
[[nodiscard]] Result<std::vector<TokenId>> tokenize(const Prompt& prompt,
                                                    const text::Tokenizer& tokenizer);

}  // namespace sluice::protocol
