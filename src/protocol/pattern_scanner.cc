#include "protocol/pattern_scanner.h"

#include <algorithm>

#include "base/assert.h"

namespace sluice::protocol {

std::size_t PatternScanner::add(std::string_view pattern, Anchor anchor) {
    SLUICE_ASSERT(!pattern.empty());
    std::vector<std::uint32_t> failure(pattern.size(), 0);
    for (std::uint32_t i = 1, border = 0; i < pattern.size(); ++i) {
        while (border > 0 && pattern[i] != pattern[border]) border = failure[border - 1];
        if (pattern[i] == pattern[border]) ++border;
        failure[i] = border;
    }
    patterns_.push_back({std::string(pattern), std::move(failure), anchor});
    index_first_bytes();
    return patterns_.size() - 1;
}

void PatternScanner::advance(Pattern& pattern, char byte) {
    while (pattern.matched > 0 && pattern.text[pattern.matched] != byte) {
        pattern.matched = pattern.failure[pattern.matched - 1];
    }
    if (pattern.text[pattern.matched] == byte) ++pattern.matched;
}

bool PatternScanner::counts(const Pattern& pattern) const {
    return pattern.anchor == Anchor::kAnywhere || at_start_;
}

std::optional<std::size_t> PatternScanner::step(char byte) {
    const std::size_t pending = held_ + 1;
    std::optional<std::size_t> found;
    held_ = 0;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
        Pattern& pattern = patterns_[i];
        if (!counts(pattern)) continue;
        advance(pattern, byte);
        const std::size_t matched = pattern.matched;
        // An anchored pattern that doesn't reach back to the first held byte has text before it.
        if (pattern.anchor == Anchor::kStart && matched != pending) {
            if (matched == pattern.text.size()) pattern.matched = pattern.failure[matched - 1];
            continue;
        }
        held_ = std::max(held_, matched);
        if (matched < pattern.text.size()) continue;
        if (!found || matched > patterns_[*found].text.size()) found = i;
    }
    return found;
}

void PatternScanner::reset() {
    held_ = 0;
    for (Pattern& pattern : patterns_) pattern.matched = 0;
}

void PatternScanner::leave_start() {
    if (!at_start_) return;
    at_start_ = false;
    index_first_bytes();
}

void PatternScanner::index_first_bytes() {
    begins_.fill(false);
    for (const Pattern& pattern : patterns_) {
        if (counts(pattern)) begins_[static_cast<unsigned char>(pattern.text.front())] = true;
    }
}

}  // namespace sluice::protocol
