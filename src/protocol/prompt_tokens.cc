#include "protocol/prompt_tokens.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

namespace sluice::protocol {
namespace {

/// Gathers plain text until something else comes: text is merged across segments, so it must be
/// encoded as one.
class PromptEncoder {
public:
    explicit PromptEncoder(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

    void add_text(std::string_view text) { text_ += text; }

    void add_control(TokenId id) {
        flush();
        ids_.push_back(id);
    }

    [[nodiscard]] std::vector<TokenId> finish() {
        flush();
        return std::move(ids_);
    }

private:
    void flush() {
        if (text_.empty()) return;
        tokenizer_.encode(text_, ids_);
        text_.clear();
    }

    const text::Tokenizer& tokenizer_;
    std::string text_;
    std::vector<TokenId> ids_;
};

}  // namespace

Result<std::vector<TokenId>> tokenize(const Prompt& prompt, const text::Tokenizer& tokenizer) {
    PromptEncoder encoder(tokenizer);
    for (const Segment& segment : prompt.segments) {
        if (segment.kind == SegmentKind::kText) {
            encoder.add_text(segment.text);
            continue;
        }
        if (segment.kind == SegmentKind::kImage) {
            return std::unexpected(Error::unsupported("this model does not take images"));
        }
        const std::optional<TokenId> id = tokenizer.control_id(segment.text);
        if (id) {
            encoder.add_control(*id);
        } else if (segment.kind == SegmentKind::kOptionalControl) {
            encoder.add_text(segment.text);
        } else {
            return std::unexpected(Error::unsupported(fmt::format(
                "the model's vocabulary has no token {}, which the prompt needs", segment.text)));
        }
    }
    return encoder.finish();
}

}  // namespace sluice::protocol
