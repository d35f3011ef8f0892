#include "protocol/completion_events.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "protocol/json_writer.h"

namespace sluice::protocol {
namespace {

std::uint64_t characters(std::string_view text) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

/// Bytes that are no text are named as such: a bare "\x.." could be a token of that spelling.
std::string legacy_token(std::string_view bytes) {
    std::string text = token_text(bytes);
    return text == bytes ? text : "bytes:" + text;
}

void append_top(std::string& out, const PositionLogprobs& position) {
    out += '{';
    for (std::size_t i = 0; i < position.top.size(); ++i) {
        if (i > 0) out += ',';
        append_json_string(out, legacy_token(position.top[i].bytes));
        out += ':';
        append_json_logprob(out, position.top[i].logprob);
    }
    out += '}';
}

template <class Append>
void append_list(std::string& out, std::string_view name,
                 std::span<const PositionLogprobs> positions, const Append& append) {
    out += fmt::format(R"("{}":[)", name);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        if (i > 0) out += ',';
        append(positions[i]);
    }
    out += ']';
}

/// `offset` is the place of the first token's text, in characters.
void append_logprobs(std::string& out, std::span<const PositionLogprobs> positions,
                     std::uint64_t offset) {
    if (positions.empty()) {
        out += "null";
        return;
    }
    out += '{';
    append_list(out, "tokens", positions, [&](const PositionLogprobs& position) {
        append_json_string(out, legacy_token(position.chosen.bytes));
    });
    out += ',';
    append_list(out, "token_logprobs", positions, [&](const PositionLogprobs& position) {
        append_json_logprob(out, position.chosen.logprob);
    });
    out += ',';
    append_list(out, "top_logprobs", positions,
                [&](const PositionLogprobs& position) { append_top(out, position); });
    out += ',';
    append_list(out, "text_offset", positions, [&](const PositionLogprobs& position) {
        out += fmt::format_int(offset).str();
        offset += characters(position.chosen.bytes);
    });
    out += '}';
}

void append_choice(std::string& out, std::string_view text,
                   std::span<const PositionLogprobs> logprobs, std::uint64_t offset) {
    out += R"({"index":0,"text":)";
    append_json_string(out, text);
    out += R"(,"logprobs":)";
    append_logprobs(out, logprobs, offset);
    out += R"(,"finish_reason":)";
}

}  // namespace

CompletionStream::CompletionStream(const ResponseInfo& info) {
    head_ += '{';
    append_head(head_, info, "text_completion");
    head_ += R"(,"choices":[)";
}

std::string CompletionStream::delta(std::string_view text,
                                    std::span<const PositionLogprobs> logprobs) {
    SLUICE_ASSERT(!text.empty());
    std::string out;
    out.reserve(head_.size() + text.size() + 128);
    out += head_;
    append_choice(out, text, logprobs, offset_);
    out += "null}]}";
    offset_ += characters(text);
    return out;
}

std::string CompletionStream::finish(FinishReason reason) const {
    std::string out = head_;
    append_choice(out, "", {}, offset_);
    out += fmt::format("\"{}\"}}]}}", to_string(reason));
    return out;
}

std::string CompletionStream::usage(const Usage& usage) const {
    std::string out = head_;
    out += R"(],"usage":)";
    append_usage(out, usage);
    out += '}';
    return out;
}

CompletionBody::CompletionBody(ResponseInfo info) : info_(std::move(info)) {}

void CompletionBody::add(std::string_view text, std::span<const PositionLogprobs> logprobs) {
    text_ += text;
    logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
}

std::string CompletionBody::finish(FinishReason reason, const Usage& usage) const {
    std::string out(1, '{');
    append_head(out, info_, "text_completion");
    out += R"(,"choices":[)";
    append_choice(out, text_, logprobs_, 0);
    out += fmt::format(R"("{}"}}],"usage":)", to_string(reason));
    append_usage(out, usage);
    out += '}';
    return out;
}

}  // namespace sluice::protocol
