// However the output is cut, the answer is the same, and no more is held than a mark is long.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "protocol/output_parser.h"

namespace {

using namespace sluice::protocol;

struct Answer {
    std::string reasoning;
    std::string content;
    std::optional<std::string> stop;
    bool operator==(const Answer&) const = default;
};

/// Pieces of `sizes[i] + 1` bytes, over and over; all at once without sizes.
Answer fold(const ParseOptions& options, std::string_view text, std::string_view sizes) {
    OutputParser parser(options);
    Answer answer;
    std::uint64_t end = 0;
    const auto add = [&](const std::vector<OutputEvent>& events) {
        for (const OutputEvent& event : events) {
            SLUICE_ASSERT(!event.text.empty() && event.begin >= end);
            end = event.end;
            (event.kind == OutputKind::kReasoning ? answer.reasoning : answer.content) +=
                event.text;
        }
    };
    for (std::size_t i = 0; !text.empty(); ++i) {
        const std::size_t wanted =
            sizes.empty() ? text.size()
                          : static_cast<unsigned char>(sizes[i % sizes.size()]) % 16 + 1;
        const std::size_t size = std::min(wanted, text.size());
        add(parser.push(text.substr(0, size)));
        text.remove_prefix(size);
    }
    add(parser.finish());
    answer.stop = parser.matched_stop();
    return answer;
}

}  // namespace

/// Layout: a byte of options, stop strings and chunk sizes up to two zero bytes, then the output.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view input(reinterpret_cast<const char*>(data), size);
    if (input.empty()) return 0;
    const auto flags = static_cast<unsigned char>(input.front());
    input.remove_prefix(1);
    ParseOptions options;
    options.start = static_cast<OutputStart>(flags & 3);
    options.markup = (flags & 4) != 0 ? Markup::kNone : Markup::kChat;
    for (int i = (flags >> 3) & 3; i > 0; --i) {
        const std::size_t end = std::min(input.find('\0'), input.size());
        options.stop.emplace_back(input.substr(0, end));
        input.remove_prefix(std::min(end + 1, input.size()));
    }
    const std::string_view sizes = input.substr(0, std::min<std::size_t>(4, input.size()));
    const Answer whole = fold(options, input, {});
    SLUICE_ASSERT(fold(options, input, sizes) == whole);
    SLUICE_ASSERT(fold(options, input, std::string_view("\0", 1)) == whole);
    return 0;
}
