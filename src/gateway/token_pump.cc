#include "gateway/token_pump.h"

#include <algorithm>
#include <utility>

namespace sluice::gateway {

TokenPump::TokenPump(const text::Tokenizer& tokenizer, const protocol::ParseOptions& parse)
    : tokenizer_(tokenizer), detokenizer_(tokenizer), parser_(parse) {}

protocol::TokenLogprob TokenPump::named(const port::TokenLogprob& logprob) const {
    return {.bytes = std::string(tokenizer_.bytes(logprob.token)), .logprob = logprob.logprob};
}

std::vector<Piece> TokenPump::take(const port::GenerateFrame& frame) {
    std::vector<Piece> pieces;
    if (finished_) return pieces;
    usage_.prompt_tokens = frame.prompt_tokens;
    // A resumed leg finds more in its cache than the first one; the client's number is the first.
    if (journal_.empty()) usage_.cached_tokens = frame.cached_tokens;
    count_guesses(frame);
    const auto& finish = frame.finish_reason;
    const bool stopped = finish && finish->type == port::FinishType::kStop;
    for (std::size_t i = 0; i < frame.output_ids.size() && !finished_; ++i) {
        const TokenId token = frame.output_ids[i];
        const bool is_stop_token =
            stopped && finish->matched == token && i + 1 == frame.output_ids.size();
        if (parser_.in_reasoning()) ++usage_.reasoning_tokens;
        ++usage_.completion_tokens;
        journal_.push_back(token);
        if (is_stop_token) break;  // It ends the answer and is no part of it.
        take_token(token, i < frame.output_logprobs.size() ? &frame.output_logprobs[i] : nullptr,
                   pieces);
    }
    if (finish && !finished_) {
        push_text(detokenizer_.finish(), pieces);
        add_events(parser_.finish(), pieces);
        if (!finished_)
            finished_ = finish->type == port::FinishType::kLength ? protocol::FinishReason::kLength
                                                                  : protocol::FinishReason::kStop;
    }
    return pieces;
}

// A leg counts from zero; a resumed one adds to those before it.
void TokenPump::count_guesses(const port::GenerateFrame& frame) {
    if (frame.drafted < leg_drafted_) leg_drafted_ = leg_accepted_ = 0;
    usage_.drafted += frame.drafted - leg_drafted_;
    usage_.accepted += std::max(frame.accepted, leg_accepted_) - leg_accepted_;
    leg_drafted_ = frame.drafted;
    leg_accepted_ = frame.accepted;
}

void TokenPump::take_token(TokenId token, const port::PositionLogprobs* logprobs,
                           std::vector<Piece>& pieces) {
    const std::string text = detokenizer_.push(token);
    if (logprobs != nullptr) {
        protocol::PositionLogprobs position{.chosen = named(logprobs->chosen), .top = {}};
        for (const port::TokenLogprob& each : logprobs->top) position.top.push_back(named(each));
        logprobs_.push(std::move(position), pushed_bytes_ + text.size());
    }
    push_text(text, pieces);
}

void TokenPump::push_text(const std::string& text, std::vector<Piece>& pieces) {
    if (text.empty() || finished_) return;
    pushed_bytes_ += text.size();
    add_events(parser_.push(text), pieces);
    if (parser_.stopped()) finished_ = protocol::FinishReason::kStop;
}

void TokenPump::add_events(std::vector<protocol::OutputEvent> events, std::vector<Piece>& pieces) {
    for (protocol::OutputEvent& event : events) {
        Piece piece{.event = std::move(event), .logprobs = {}};
        piece.logprobs = logprobs_.take(piece.event);
        pieces.push_back(std::move(piece));
    }
}

}  // namespace sluice::gateway
