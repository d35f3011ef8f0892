#include "protocol/output_parser.h"

#include <utility>

#include "protocol/control_tokens.h"

namespace sluice::protocol {

OutputParser::OutputParser(const ParseOptions& options) : markup_(options.markup) {
    for (const std::string& stop : options.stop) {
        if (!stop.empty()) stop_.push_back(stop);
    }
    add_patterns();
    if (markup_ == Markup::kNone) return;
    const OutputStart start = options.start;
    if (start == OutputStart::kReasoning || start == OutputStart::kReasoningContinuation) {
        kind_ = OutputKind::kReasoning;
    }
    leading_ = start == OutputStart::kReasoning || start == OutputStart::kContent;
    if (!leading_) {
        reasoning_scanner_.leave_start();
        content_scanner_.leave_start();
    }
}

void OutputParser::add_patterns() {
    const auto add = [](PatternScanner& scanner, std::vector<Mark>& marks, std::string_view text,
                        Mark mark, PatternScanner::Anchor anchor) {
        scanner.add(text, anchor);
        marks.push_back(mark);
    };
    using enum PatternScanner::Anchor;
    // Stop strings come first: of equal length, the stop string wins.
    for (const std::string& stop : stop_) {
        add(content_scanner_, content_marks_, stop, Mark::kStop, kAnywhere);
    }
    if (markup_ == Markup::kNone) return;
    add(reasoning_scanner_, reasoning_marks_, control::kThinkBegin, Mark::kThinkBegin, kStart);
    add(content_scanner_, content_marks_, control::kThinkBegin, Mark::kThinkBegin, kStart);
    for (const std::string_view sentence : {control::kBos, control::kEos}) {
        add(reasoning_scanner_, reasoning_marks_, sentence, Mark::kSentence, kAnywhere);
        add(content_scanner_, content_marks_, sentence, Mark::kSentence, kAnywhere);
    }
    add(reasoning_scanner_, reasoning_marks_, control::kThinkEnd, Mark::kThinkEnd, kAnywhere);
    add(content_scanner_, content_marks_, control::kThinkEnd, Mark::kThinkEnd, kAnywhere);
}

PatternScanner& OutputParser::scanner() {
    return kind_ == OutputKind::kReasoning ? reasoning_scanner_ : content_scanner_;
}

const std::vector<OutputParser::Mark>& OutputParser::marks() const {
    return kind_ == OutputKind::kReasoning ? reasoning_marks_ : content_marks_;
}

std::vector<OutputEvent> OutputParser::push(std::string_view text) {
    while (!text.empty() && !stopped() && !finished_) {
        const std::size_t plain = take_plain(text);
        text.remove_prefix(plain);
        if (text.empty()) break;
        take(text.front());
        text.remove_prefix(1);
    }
    return std::exchange(events_, {});
}

/// Most text can begin no mark: gives all of it up to where one might.
std::size_t OutputParser::take_plain(std::string_view text) {
    if (leading_ || newlines_ > 0 || held_front_ < held_.size()) return 0;
    const PatternScanner& active = scanner();
    const bool reasoning = kind_ == OutputKind::kReasoning;
    std::size_t size = 0;
    while (size < text.size() && !active.can_begin(text[size]) &&
           !(reasoning && text[size] == '\n')) {
        ++size;
    }
    give(text.substr(0, size), position_);
    position_ += size;
    return size;
}

void OutputParser::take(char byte) {
    if (byte == '\n' && take_newline()) {
        ++position_;
        return;
    }
    ++position_;
    held_ += byte;
    const std::optional<std::size_t> match = scanner().step(byte);
    if (match) return take_mark(*match);
    release(scanner().held());
}

/// Newlines are dropped where text begins, and held while thinking, as its end may follow.
bool OutputParser::take_newline() {
    if (leading_ && held_front_ == held_.size()) return true;
    if (kind_ != OutputKind::kReasoning) return false;
    // No mark of thinking holds a newline, so none that had begun can come true.
    scanner().reset();
    release(0);
    ++newlines_;
    return true;
}

void OutputParser::take_mark(std::size_t index) {
    const Mark mark = marks()[index];
    const std::size_t length = scanner().length(index);
    scanner().reset();
    if (held_.size() - held_front_ > length) release(length);
    held_.clear();
    held_front_ = 0;
    switch (mark) {
        case Mark::kStop: matched_stop_ = stop_[index]; break;
        case Mark::kThinkBegin: enter(OutputKind::kReasoning); break;
        case Mark::kThinkEnd:
            if (kind_ == OutputKind::kReasoning) enter(OutputKind::kContent);
            break;
        case Mark::kSentence: break;
    }
}

void OutputParser::enter(OutputKind kind) {
    kind_ = kind;
    newlines_ = 0;
    leading_ = true;
    reasoning_scanner_.leave_start();
    content_scanner_.leave_start();
}

/// Gives all held bytes but the last `keep`.
void OutputParser::release(std::size_t keep) {
    const std::size_t held = held_.size() - held_front_;
    if (held <= keep) return;
    const std::uint64_t begin = position_ - held;
    if (newlines_ > 0) {
        const std::uint64_t newlines = std::exchange(newlines_, 0);
        give(std::string(newlines, '\n'), begin - newlines);
    }
    if (leading_) {
        leading_ = false;
        reasoning_scanner_.leave_start();
        content_scanner_.leave_start();
    }
    give(std::string_view(held_).substr(held_front_, held - keep), begin);
    held_front_ += held - keep;
    // Moved to the front only now and then, so that a long held string costs no more than its bytes.
    if (held_front_ == held_.size() || held_front_ > held_.size() / 2) {
        held_.erase(0, std::exchange(held_front_, 0));
    }
}

void OutputParser::give(std::string_view text, std::uint64_t begin) {
    if (text.empty()) return;
    if (!events_.empty() && events_.back().kind == kind_ && events_.back().end == begin) {
        events_.back().text += text;
        events_.back().end += text.size();
        return;
    }
    events_.push_back({kind_, std::string(text), begin, begin + text.size()});
}

std::vector<OutputEvent> OutputParser::finish() {
    if (stopped() || finished_) return {};
    finished_ = true;
    release(0);
    if (newlines_ > 0) {
        const std::uint64_t newlines = std::exchange(newlines_, 0);
        give(std::string(newlines, '\n'), position_ - newlines);
    }
    return std::exchange(events_, {});
}

}  // namespace sluice::protocol
