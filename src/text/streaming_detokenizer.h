#pragma once

// Tokens of one stream to text, never half a character.
//
// A character may be spread over several tokens, so its bytes wait until it is complete. What can
// no longer become a character turns into U+FFFD at once, and what is cut short by the end turns
// into U+FFFD there: nothing else holds text back, at most 3 bytes ever wait. All pieces, joined,
// equal replace_invalid_utf8(tokenizer.decode(all tokens)).

#include <string>

#include "text/tokenizer.h"

namespace sluice::text {

class StreamingDetokenizer {
public:
    explicit StreamingDetokenizer(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    /// The text that `token` completes, maybe none.
    [[nodiscard]] std::string push(TokenId token);

    /// What is left at the end of the stream: nothing, or one U+FFFD. Ready for a new stream then.
    [[nodiscard]] std::string finish();

    /// Whether the last push left part of a character waiting.
    [[nodiscard]] bool inside_character() const { return !pending_.empty(); }

private:
    Tokenizer tokenizer_;
    std::string pending_;  ///< The right beginning of one character.
};

}  // namespace sluice::text
