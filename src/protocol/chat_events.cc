#include "protocol/chat_events.h"

#include "base/assert.h"
#include "protocol/json_writer.h"

namespace sluice::protocol {
namespace {

constexpr std::string_view kTail = R"(},"logprobs":null,"finish_reason":null}]})";

/// `reasoning_content` beside OpenAI's `content`, as DeepSeek's clients read it.
void append_logprobs(std::string& out, std::span<const PositionLogprobs> reasoning,
                     std::span<const PositionLogprobs> content) {
    if (reasoning.empty() && content.empty()) {
        out += "null";
        return;
    }
    out += R"({"content":)";
    append_logprob_list(out, content);
    if (!reasoning.empty()) {
        out += R"(,"reasoning_content":)";
        append_logprob_list(out, reasoning);
    }
    out += '}';
}

void append_finish_reason(std::string& out, FinishReason reason) {
    out += R"("finish_reason":")";
    out += to_string(reason);
    out += '"';
}

}  // namespace

ChatStream::ChatStream(const ResponseInfo& info) {
    head_ += '{';
    append_head(head_, info, "chat.completion.chunk");
    head_ += R"(,"choices":[)";
}

std::string ChatStream::role() const {
    std::string out = head_;
    out += R"({"index":0,"delta":{"role":"assistant","content":"")";
    out += kTail;
    return out;
}

std::string ChatStream::delta(const OutputEvent& event,
                              std::span<const PositionLogprobs> logprobs) const {
    SLUICE_ASSERT(!event.text.empty());
    const bool reasoning = event.kind == OutputKind::kReasoning;
    std::string out;
    out.reserve(head_.size() + event.text.size() + 128);
    out += head_;
    out += reasoning ? R"({"index":0,"delta":{"reasoning_content":)"
                     : R"({"index":0,"delta":{"content":)";
    append_json_string(out, event.text);
    if (logprobs.empty()) {
        out += kTail;
        return out;
    }
    out += R"(},"logprobs":)";
    if (reasoning) {
        append_logprobs(out, logprobs, {});
    } else {
        append_logprobs(out, {}, logprobs);
    }
    out += R"(,"finish_reason":null}]})";
    return out;
}

std::string ChatStream::finish(FinishReason reason) const {
    std::string out = head_;
    out += R"({"index":0,"delta":{},"logprobs":null,)";
    append_finish_reason(out, reason);
    out += "}]}";
    return out;
}

std::string ChatStream::usage(const Usage& usage) const {
    std::string out = head_;
    out += R"(],"usage":)";
    append_usage(out, usage);
    out += '}';
    return out;
}

ChatBody::ChatBody(ResponseInfo info, Thinking thinking)
    : info_(std::move(info)), has_reasoning_(thinking == Thinking::kOn) {}

void ChatBody::add(const OutputEvent& event, std::span<const PositionLogprobs> logprobs) {
    const bool reasoning = event.kind == OutputKind::kReasoning;
    has_reasoning_ = has_reasoning_ || reasoning;
    (reasoning ? reasoning_ : content_) += event.text;
    auto& list = reasoning ? reasoning_logprobs_ : content_logprobs_;
    list.insert(list.end(), logprobs.begin(), logprobs.end());
}

std::string ChatBody::finish(FinishReason reason, const Usage& usage) const {
    std::string out(1, '{');
    append_head(out, info_, "chat.completion");
    out += R"(,"choices":[{"index":0,"message":{"role":"assistant","content":)";
    append_json_string(out, content_);
    if (has_reasoning_) {
        out += R"(,"reasoning_content":)";
        append_json_string(out, reasoning_);
    }
    out += R"(,"refusal":null},"logprobs":)";
    append_logprobs(out, reasoning_logprobs_, content_logprobs_);
    out += ',';
    append_finish_reason(out, reason);
    out += R"(}],"usage":)";
    append_usage(out, usage);
    out += '}';
    return out;
}

}  // namespace sluice::protocol
