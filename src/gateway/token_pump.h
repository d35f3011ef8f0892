#pragma once

// Turns an engine's frames into what a client reads: tokens to text, text to thinking and answer,
// stop strings, log-probabilities, usage. It keeps the journal of the tokens that came, so that a
// stream can go on after its worker is lost. No socket, no clock.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "port/generate.h"
#include "protocol/logprobs.h"
#include "protocol/output_parser.h"
#include "protocol/response.h"
#include "text/streaming_detokenizer.h"

namespace sluice::gateway {

/// A run of text of one kind with the log-probabilities of its tokens.
struct Piece {
    protocol::OutputEvent event;
    std::vector<protocol::PositionLogprobs> logprobs;
};

class TokenPump {
public:
    TokenPump(const text::Tokenizer& tokenizer, const protocol::ParseOptions& parse);

    /// Takes the next frame. After `finished`, frames are ignored.
    [[nodiscard]] std::vector<Piece> take(const port::GenerateFrame& frame);

    /// Set once the answer is complete: by the engine, or by a stop string.
    [[nodiscard]] std::optional<protocol::FinishReason> finished() const { return finished_; }

    /// Every token that came, those of a stop string included.
    [[nodiscard]] std::span<const TokenId> journal() const { return journal_; }

    [[nodiscard]] const protocol::Usage& usage() const { return usage_; }

private:
    void take_token(TokenId token, const port::PositionLogprobs* logprobs,
                    std::vector<Piece>& pieces);
    void count_guesses(const port::GenerateFrame& frame);
    void push_text(const std::string& text, std::vector<Piece>& pieces);
    void add_events(std::vector<protocol::OutputEvent> events, std::vector<Piece>& pieces);
    [[nodiscard]] protocol::TokenLogprob named(const port::TokenLogprob& logprob) const;

    text::Tokenizer tokenizer_;
    text::StreamingDetokenizer detokenizer_;
    protocol::OutputParser parser_;
    protocol::LogprobQueue logprobs_;
    std::uint64_t pushed_bytes_ = 0;
    std::vector<TokenId> journal_;
    protocol::Usage usage_;
    std::uint64_t leg_drafted_ = 0;  ///< As the present leg said last.
    std::uint64_t leg_accepted_ = 0;
    std::optional<protocol::FinishReason> finished_;
};

}  // namespace sluice::gateway
