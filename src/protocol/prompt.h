#pragma once

// A rendered prompt, before it is token ids.
//
// Only a control segment may become control tokens. Whatever a client wrote is a text segment, so
// that no user, document or tool can speak with the template's voice by spelling its tokens: the
// tokenizer encodes text segments as plain characters.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::protocol {

enum class SegmentKind : std::uint8_t {
    kText,     ///< Plain characters, whatever they spell.
    kControl,  ///< Exactly one control token; a vocabulary without it can't serve the prompt.
    /// A control token where the vocabulary has it, plain characters where not (the marks by which
    /// assistant turns point into images).
    kOptionalControl,
    kImage,  ///< Placeholder of the next image.
};

struct Segment {
    SegmentKind kind = SegmentKind::kText;
    std::string text;  ///< UTF-8, never empty.
    bool operator==(const Segment&) const = default;
};

/// In which state the model goes on writing: what the parser of its output must start from.
enum class OutputStart : std::uint8_t {
    kContent,                ///< An answer begins.
    kContentContinuation,    ///< An answer goes on: its first newline counts.
    kReasoning,              ///< Thinking begins.
    kReasoningContinuation,  ///< Thinking goes on.
};

struct Prompt {
    std::vector<Segment> segments;  ///< No two text segments stand side by side.
    OutputStart start = OutputStart::kContent;
    /// The first segment that is one conversation's own: before it stand tools and system text, which
    /// many conversations share. Beyond the end where there is none.
    std::size_t own_segment = kNone;

    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

    /// The prompt as one would read it.
    [[nodiscard]] std::string text() const;

    /// Half-open byte ranges of `text()` that stand for control tokens, one a token, ascending.
    [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> control_ranges() const;

    /// Appends plain text to the last text segment, or as a new one; "" changes nothing.
    void add_text(std::string_view text);
    void add_control(std::string_view spelling, SegmentKind kind = SegmentKind::kControl);
    /// What is appended from now on is the conversation's own; only the first call counts.
    void begin_own();

    bool operator==(const Prompt&) const = default;
};

}  // namespace sluice::protocol
