#pragma once

// Turns what the model writes into thinking and answer text, byte for byte the same however the
// stream is cut.
//
// Rules, in the order they bind:
//  - `</think>` ends thinking; newlines before and after it are dropped. In an answer it is dropped.
//  - Where thinking or an answer begins, its first newlines are dropped, unless it is a continuation.
//  - `<think>` as the first thing of the output opens thinking, if the prompt didn't, and is dropped.
//    Later it is text.
//  - Spellings of the begin and end of sentence are dropped everywhere.
//  - A stop string ends the answer before it; what follows is ignored. Stop strings don't look at
//    thinking and don't reach over a dropped mark. The one complete first wins, of those the longest;
//    a mark that is longer than the stop string that ends with it wins too.
//
// At most the longest mark or stop string is held back, and only while it may still come true;
// while thinking, also the newlines before a possible `</think>`.
//
// Where this differs from DeepSeek's own layer (0.2.0) on purpose: that one leaves `<think>` and the
// sentence marks in the text, drops the first newlines of a continued answer without thinking, takes
// a dropped `</think>` for the beginning of an answer (so that newlines after it stay), and keeps the
// newline in "</thi\n</think>".
//
// No thread, no clock; one parser per answer. Tool calls will be a further kind of event.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/pattern_scanner.h"
#include "protocol/prompt.h"

namespace sluice::protocol {

enum class OutputKind : std::uint8_t { kReasoning, kContent };

struct OutputEvent {
    OutputKind kind = OutputKind::kContent;
    std::string text;  ///< Never empty; whole characters if the pushed text was.
    /// Where it stood in the pushed text, in bytes; with what was dropped next to it left out.
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const OutputEvent&) const = default;
};

enum class Markup : std::uint8_t {
    kChat,  ///< The rules above.
    kNone,  ///< Raw text: stop strings only. For Completions.
};

struct ParseOptions {
    OutputStart start = OutputStart::kContent;
    std::vector<std::string> stop = {};  ///< Empty ones are ignored.
    Markup markup = Markup::kChat;
};

class OutputParser {
public:
    explicit OutputParser(const ParseOptions& options);

    /// Takes the next piece of output. Consecutive text of one kind is one event.
    [[nodiscard]] std::vector<OutputEvent> push(std::string_view text);

    /// The output is over: gives what was held back. Later calls give nothing.
    [[nodiscard]] std::vector<OutputEvent> finish();

    /// The stop string that ended the answer.
    [[nodiscard]] const std::optional<std::string>& matched_stop() const { return matched_stop_; }
    [[nodiscard]] bool stopped() const { return matched_stop_.has_value(); }

    /// Whether the next token belongs to thinking, for counting.
    [[nodiscard]] bool in_reasoning() const { return kind_ == OutputKind::kReasoning; }

    /// Bytes pushed and neither given nor dropped yet.
    [[nodiscard]] std::size_t held_bytes() const { return held_.size() - held_front_ + newlines_; }

private:
    enum class Mark : std::uint8_t { kThinkBegin, kThinkEnd, kSentence, kStop };

    PatternScanner& scanner();
    const std::vector<Mark>& marks() const;
    void add_patterns();
    std::size_t take_plain(std::string_view text);
    void take(char byte);
    bool take_newline();
    void take_mark(std::size_t index);
    void enter(OutputKind kind);
    void release(std::size_t keep);
    void give(std::string_view text, std::uint64_t begin);

    PatternScanner reasoning_scanner_;
    PatternScanner content_scanner_;
    std::vector<Mark> reasoning_marks_;  ///< What each pattern means, by index.
    std::vector<Mark> content_marks_;
    std::vector<std::string> stop_;  ///< Indexed as content_scanner_'s first patterns.

    OutputKind kind_ = OutputKind::kContent;
    Markup markup_ = Markup::kChat;
    bool leading_ = false;  ///< Newlines are dropped until something else comes.
    bool finished_ = false;
    std::string held_;  ///< Bytes that may begin a match, from held_front_ on.
    std::size_t held_front_ = 0;
    std::uint64_t newlines_ = 0;  ///< Held before held_; only while thinking.
    std::uint64_t position_ = 0;  ///< Bytes pushed.
    std::optional<std::string> matched_stop_;
    std::vector<OutputEvent> events_;
};

}  // namespace sluice::protocol
