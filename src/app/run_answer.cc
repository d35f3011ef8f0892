#include "app/run_answer.h"

#include <utility>

namespace sluice::app {

RunAnswer::RunAnswer(const text::Tokenizer& tokenizer, std::vector<std::string> stop)
    : detokenizer_(tokenizer),
      parser_({.stop = std::move(stop), .markup = protocol::Markup::kNone}) {}

void RunAnswer::add(const std::vector<protocol::OutputEvent>& events, std::string& piece) {
    for (const protocol::OutputEvent& event : events) piece += event.text;
}

std::string RunAnswer::push(const engine::Output& output) {
    std::string piece;
    prompt_tokens_ = output.prompt_tokens;
    for (std::size_t i = 0; i < output.tokens.size() && !stopped(); ++i) {
        ids_.push_back(output.tokens[i]);
        const bool stops = output.matched_stop && i + 1 == output.tokens.size();
        if (!stops) add(parser_.push(detokenizer_.push(output.tokens[i])), piece);
    }
    if (output.finish) {
        finish_ = stopped() ? engine::Finish::kStop : *output.finish;
        message_ = output.message;
        add(parser_.push(detokenizer_.finish()), piece);
        add(parser_.finish(), piece);
        if (stopped()) finish_ = engine::Finish::kStop;
    }
    text_ += piece;
    return piece;
}

}  // namespace sluice::app
