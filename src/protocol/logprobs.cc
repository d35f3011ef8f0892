#include "protocol/logprobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "protocol/json_writer.h"

namespace sluice::protocol {
namespace {

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

void append_token(std::string& out, const TokenLogprob& token) {
    out += R"({"token":)";
    append_json_string(out, token_text(token.bytes));
    out += R"(,"logprob":)";
    append_json_logprob(out, token.logprob);
    fmt::format_to(
        std::back_inserter(out), R"(,"bytes":[{}])",
        fmt::join(reinterpret_cast<const unsigned char*>(token.bytes.data()),
                  reinterpret_cast<const unsigned char*>(token.bytes.data()) + token.bytes.size(),
                  ","));
}

}  // namespace

void LogprobQueue::push(PositionLogprobs position, std::uint64_t end) {
    const std::uint64_t begin = end_;
    end_ = std::max(end_, end);
    entries_.push_back({std::move(position), begin, std::max(end_, begin + 1)});
}

std::vector<PositionLogprobs> LogprobQueue::take(const OutputEvent& event) {
    std::vector<PositionLogprobs> taken;
    while (!entries_.empty() && entries_.front().begin < event.end) {
        if (entries_.front().end > event.begin) {
            taken.push_back(std::move(entries_.front().position));
        }
        entries_.pop_front();
    }
    return taken;
}

std::string token_text(std::string_view bytes) {
    if (is_utf8(bytes)) return std::string(bytes);
    std::string text;
    for (const char byte : bytes) {
        fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(byte));
    }
    return text;
}

void append_logprob_list(std::string& out, std::span<const PositionLogprobs> positions) {
    out += '[';
    for (std::size_t i = 0; i < positions.size(); ++i) {
        if (i > 0) out += ',';
        append_token(out, positions[i].chosen);
        out += R"(,"top_logprobs":[)";
        for (std::size_t j = 0; j < positions[i].top.size(); ++j) {
            if (j > 0) out += ',';
            append_token(out, positions[i].top[j]);
            out += '}';
        }
        out += "]}";
    }
    out += ']';
}

}  // namespace sluice::protocol
