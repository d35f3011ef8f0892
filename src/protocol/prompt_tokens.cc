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

    /// What is added from now on is the conversation's own. Text that is encoded together with some
    /// of it is, too.
    void begin_own(SegmentKind next) {
        if (next == SegmentKind::kControl) flush();
        own_from_ = ids_.size();
    }

    [[nodiscard]] PromptTokens finish() {
        flush();
        const std::size_t own_from = own_from_.value_or(ids_.size());
        return {.ids = std::move(ids_), .own_from = own_from};
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
    std::optional<std::size_t> own_from_;
};

}  // namespace

Result<PromptTokens> tokenize_prompt(const Prompt& prompt, const text::Tokenizer& tokenizer) {
    PromptEncoder encoder(tokenizer);
    for (std::size_t i = 0; i < prompt.segments.size(); ++i) {
        const Segment& segment = prompt.segments[i];
        if (i == prompt.own_segment) encoder.begin_own(segment.kind);
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

Result<std::vector<TokenId>> tokenize(const Prompt& prompt, const text::Tokenizer& tokenizer) {
    auto tokens = tokenize_prompt(prompt, tokenizer);
    if (!tokens) return std::unexpected(tokens.error());
    return std::move(tokens->ids);
}

}  // namespace sluice::protocol
