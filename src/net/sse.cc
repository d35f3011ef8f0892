#include "net/sse.h"

#include <utility>

namespace sluice::net {
namespace {

constexpr std::string_view kLineEnds = "\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Appends `prefix` and one line for every line of `text`.
void append_lines(std::string& out, std::string_view prefix, std::string_view text) {
    while (true) {
        const std::size_t end = text.find_first_of(kLineEnds);
        out.append(prefix).append(text.substr(0, end)).append("\n");
        if (end == std::string_view::npos) return;
        const bool crlf = text.substr(end, 2) == "\r\n";
        text.remove_prefix(end + (crlf ? 2 : 1));
    }
}

}  // namespace

std::string sse_event(std::string_view data, std::string_view name) {
    std::string out;
    out.reserve(data.size() + name.size() + 24);
    if (!name.empty()) {
        out += "event: ";
        for (const char c : name) out += kLineEnds.find(c) == std::string_view::npos ? c : ' ';
        out += '\n';
    }
    append_lines(out, "data: ", data);
    out += '\n';
    return out;
}

std::string sse_comment(std::string_view text) {
    std::string out;
    append_lines(out, ": ", text);
    out += '\n';
    return out;
}

Result<void> SseParser::feed(std::string_view chunk,
                             const std::function<void(const Event&)>& on_event) {
    if (failed_) return fail();
    while (!chunk.empty()) {
        if (std::exchange(after_cr_, false) && chunk.front() == '\n') {
            chunk.remove_prefix(1);
            continue;
        }
        const std::size_t end = chunk.find_first_of(kLineEnds);
        const std::string_view part = chunk.substr(0, end);
        if (line_.size() + part.size() > limits::kSseEventBytes) return fail();
        if (end == std::string_view::npos) {
            line_ += part;
            return {};
        }
        after_cr_ = chunk[end] == '\r';
        chunk.remove_prefix(end + 1);
        // Most lines come whole: they are read where they are.
        std::string joined;
        if (!line_.empty()) joined = std::exchange(line_, {}).append(part);
        auto taken = take_line(joined.empty() ? part : std::string_view(joined), on_event);
        if (!taken) return taken;
    }
    return {};
}

Result<void> SseParser::take_line(std::string_view line,
                                  const std::function<void(const Event&)>& on_event) {
    if (std::exchange(at_start_, false) && line.starts_with(kByteOrderMark)) {
        line.remove_prefix(kByteOrderMark.size());
    }
    if (line.empty()) {
        const Event event = std::exchange(event_, {});
        if (std::exchange(has_data_, false)) on_event(event);
        return {};
    }
    const std::size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "event") event_.name = value;
    if (field == "data") return take_data(value);
    return {};  // Comments, ids, retry times and unknown fields mean nothing here.
}

Result<void> SseParser::take_data(std::string_view value) {
    if (event_.data.size() + value.size() + 1 > limits::kSseEventBytes) return fail();
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
    return {};
}

Result<void> SseParser::fail() {
    failed_ = true;
    line_ = {};
    event_ = {};
    return std::unexpected(Error(ErrorCode::kExhausted, "an event is larger than " +
                                                            std::to_string(limits::kSseEventBytes) +
                                                            " bytes (limit sse.event)"));
}

}  // namespace sluice::net
