#pragma once

// One answer as it grows: tokens in, whole characters out. Control tokens become their spelling; the
// stop token, and what a stop string ends, do not appear. The text is the same however the tokens came.

#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "protocol/output_parser.h"
#include "text/streaming_detokenizer.h"

namespace sluice::app {

class RunAnswer {
public:
    RunAnswer(const text::Tokenizer& tokenizer, std::vector<std::string> stop);

    /// The text that `output` adds. What comes after a stop string adds nothing.
    std::string push(const engine::Output& output);

    /// A stop string came: the request can be aborted, and the answer is complete.
    [[nodiscard]] bool stopped() const { return parser_.stopped(); }

    /// Set once the engine is done with it. kStop after a stop string, however it ended.
    [[nodiscard]] const std::optional<engine::Finish>& finish() const { return finish_; }
    [[nodiscard]] const std::string& text() const { return text_; }
    /// With the stop token.
    [[nodiscard]] const std::vector<TokenId>& ids() const { return ids_; }
    [[nodiscard]] std::uint64_t prompt_tokens() const { return prompt_tokens_; }
    /// For kFailed.
    [[nodiscard]] const std::string& message() const { return message_; }

private:
    void add(const std::vector<protocol::OutputEvent>& events, std::string& piece);

    text::StreamingDetokenizer detokenizer_;
    protocol::OutputParser parser_;
    std::vector<TokenId> ids_;
    std::string text_;
    std::optional<engine::Finish> finish_;
    std::uint64_t prompt_tokens_ = 0;
    std::string message_;
};

}  // namespace sluice::app
