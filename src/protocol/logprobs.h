#pragma once

// Log-probabilities on their way to the client.
//
// Tokens and text don't line up: a mark is dropped, a stop string cut off, a character spread over
// tokens, text held back for a while. LogprobQueue pairs them by place in the output, so that the
// list a client gets has an entry for exactly the tokens whose text it got.

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "protocol/output_parser.h"

namespace sluice::protocol {

struct TokenLogprob {
    std::string bytes;  ///< The token's own bytes; may be part of a character.
    float logprob = 0.0F;
    bool operator==(const TokenLogprob&) const = default;
};

struct PositionLogprobs {
    TokenLogprob chosen;
    std::vector<TokenLogprob> top;
    bool operator==(const PositionLogprobs&) const = default;
};

class LogprobQueue {
public:
    /// The next token of the output. `end` is how many bytes had been pushed to the parser once it was
    /// decoded; not below the last one's.
    void push(PositionLogprobs position, std::uint64_t end);

    /// The tokens whose text begins in `event`, or ran on into it from what was dropped. Those before
    /// it are forgotten: nobody will see their text. A token that completes no character counts by
    /// the byte that follows it.
    [[nodiscard]] std::vector<PositionLogprobs> take(const OutputEvent& event);

private:
    struct Entry {
        PositionLogprobs position;
        std::uint64_t begin;
        std::uint64_t end;
    };

    std::deque<Entry> entries_;
    std::uint64_t end_ = 0;
};

/// Appends Chat's list: `[{"token":..,"logprob":..,"bytes":[..],"top_logprobs":[..]}]`.
void append_logprob_list(std::string& out, std::span<const PositionLogprobs> positions);

/// The token as text; where its bytes are not UTF-8, as "\xf0\x9f".
[[nodiscard]] std::string token_text(std::string_view bytes);

}  // namespace sluice::protocol
