#include "protocol/prompt.h"

#include <algorithm>

#include "base/assert.h"

namespace sluice::protocol {

std::string Prompt::text() const {
    std::size_t size = 0;
    for (const Segment& segment : segments) size += segment.text.size();
    std::string text;
    text.reserve(size);
    for (const Segment& segment : segments) text += segment.text;
    return text;
}

std::vector<std::pair<std::size_t, std::size_t>> Prompt::control_ranges() const {
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    std::size_t begin = 0;
    for (const Segment& segment : segments) {
        const std::size_t end = begin + segment.text.size();
        if (segment.kind != SegmentKind::kText) ranges.emplace_back(begin, end);
        begin = end;
    }
    return ranges;
}

void Prompt::add_text(std::string_view text) {
    if (text.empty()) return;
    if (!segments.empty() && segments.back().kind == SegmentKind::kText) {
        segments.back().text += text;
        // Where both meet in one segment, all of it is the conversation's own.
        if (own_segment == segments.size()) --own_segment;
        return;
    }
    segments.push_back({SegmentKind::kText, std::string(text)});
}

void Prompt::begin_own() { own_segment = std::min(own_segment, segments.size()); }

void Prompt::add_control(std::string_view spelling, SegmentKind kind) {
    SLUICE_ASSERT(!spelling.empty() && kind != SegmentKind::kText);
    segments.push_back({kind, std::string(spelling)});
}

}  // namespace sluice::protocol
