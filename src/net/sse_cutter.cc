#include "net/sse_cutter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace sluice::net {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The end of the line that begins at `at`: where its terminator begins, or npos.
std::size_t line_end(std::string_view text, std::size_t at) {
    const void* const lf = std::memchr(text.data() + at, '\n', text.size() - at);
    const std::size_t stop =
        lf == nullptr ? text.size()
                      : static_cast<std::size_t>(static_cast<const char*>(lf) - text.data());
    // A CR may end a line, too, alone or before the LF.
    const void* const cr = std::memchr(text.data() + at, '\r', stop - at);
    if (cr != nullptr) return static_cast<std::size_t>(static_cast<const char*>(cr) - text.data());
    return lf == nullptr ? std::string_view::npos : stop;
}

std::size_t terminator_bytes(std::string_view text, std::size_t at) {
    return text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
}

/// The value of a data line; false if it is another one.
bool data_value(std::string_view line, std::string_view& value) {
    constexpr std::string_view kData = "data";
    if (!line.starts_with(kData)) return false;
    line.remove_prefix(kData.size());
    if (!line.empty() && line.front() != ':') return false;
    if (!line.empty()) line.remove_prefix(1);
    if (line.starts_with(' ')) line.remove_prefix(1);
    value = line;
    return true;
}

}  // namespace

std::size_t SseCutter::find_end(std::string_view input, std::size_t from) {
    std::size_t at = from;
    while (at < input.size()) {
        const std::size_t end = line_end(input, at);
        if (end == std::string_view::npos) return 0;
        // Of a CRLF cut in two the LF comes later, and stands before the next event.
        const std::size_t next = end + terminator_bytes(input, end);
        // Blank lines before an event's first line belong to it, and end nothing.
        if (end == at && at > 0) return next;
        at = next;
    }
    return 0;
}

SseCutter::Piece SseCutter::cut(std::string_view raw) {
    Piece piece{.raw = raw, .data = {}};
    std::string_view text = raw;
    if (std::exchange(at_start_, false) && text.starts_with(kByteOrderMark))
        text.remove_prefix(kByteOrderMark.size());
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = std::min(line_end(text, at), text.size());
        std::string_view value;
        if (data_value(text.substr(at, end - at), value)) {
            if (!piece.has_data) {
                piece.data = value;
            } else {
                if (piece.data.data() != lines_.data()) lines_ = piece.data;
                lines_ += '\n';
                lines_ += value;
                piece.data = lines_;
            }
            piece.has_data = true;
        }
        if (end == text.size()) break;
        at = end + terminator_bytes(text, end);
    }
    return piece;
}

bool SseCutter::in_event() const {
    return std::ranges::any_of(kept_, [](char c) { return c != '\r' && c != '\n'; });
}

Result<void> SseCutter::keep(std::string_view rest, bool joined) {
    if (rest.size() > limits::kSseEventBytes) {
        failed_ = true;
        kept_ = {};
        return std::unexpected(too_large());
    }
    if (joined) {
        kept_.erase(0, kept_.size() - rest.size());
    } else {
        kept_.assign(rest);
    }
    // The next search starts at the beginning of the last line that has not ended.
    const std::size_t last = kept_.find_last_of("\r\n");
    const bool half = last != std::string::npos && last + 1 == kept_.size() && kept_[last] == '\r';
    seen_ = last == std::string::npos || half ? 0 : last + 1;
    if (kept_.empty() && kept_.capacity() > limits::kSseEventBytes / 256) kept_.shrink_to_fit();
    return {};
}

Error SseCutter::too_large() {
    return {ErrorCode::kExhausted, "an event is larger than " +
                                       std::to_string(limits::kSseEventBytes) +
                                       " bytes (limit sse.event)"};
}

}  // namespace sluice::net
