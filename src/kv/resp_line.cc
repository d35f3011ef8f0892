#include "kv/resp_line.h"

#include <charconv>

namespace sluice::kv {

RespLineReader::Status RespLineReader::read(std::string_view& data, std::size_t most) {
    if (whole_) {
        held_.clear();
        whole_ = false;
    }
    const std::size_t end = data.find('\n');
    const std::string_view piece = data.substr(0, end);
    if (held_.size() + piece.size() > most + 1) return Status::kTooLong;  // One for the CR.
    if (end == std::string_view::npos) {
        held_ += piece;
        data = {};
        return Status::kMore;
    }
    data.remove_prefix(end + 1);
    whole_ = true;
    line_ = piece;
    if (!held_.empty()) line_ = held_ += piece;
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    return line_.size() > most ? Status::kTooLong : Status::kLine;
}

std::optional<std::int64_t> parse_resp_integer(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
        if (text.starts_with('-')) return std::nullopt;
    }
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace sluice::kv
