#include "kv/resp_reply_reader.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

namespace sluice::kv {
namespace {

// Taken on trust; more room is made as elements come.
constexpr std::size_t kElementsAtOnce = 16;

std::optional<double> parse_double(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return value;
}

RespType aggregate_type(char kind) {
    switch (kind) {
        case '~': return RespType::kSet;
        case '%':
        case '|': return RespType::kMap;
        case '>': return RespType::kPush;
        default: return RespType::kArray;
    }
}

}  // namespace

RespReplyReader::Status RespReplyReader::read(std::string_view& data) {
    Status status = Status::kMore;
    while (status == Status::kMore && !data.empty()) {
        switch (stage_) {
            case Stage::kLine: status = read_line(data); break;
            case Stage::kText:
            case Stage::kTextEnd: status = read_text(data); break;
            case Stage::kFailed: return Status::kError;
        }
    }
    return status;
}

RespReply RespReplyReader::take() {
    elements_ = held_bytes_ = 0;
    return std::exchange(reply_, {});
}

std::span<char> RespReplyReader::room() const {
    return stage_ == Stage::kText ? text_.room() : std::span<char>();
}

RespReplyReader::Status RespReplyReader::read_line(std::string_view& data) {
    switch (line_.read(data, bounds_.line_bytes)) {
        case RespLineReader::Status::kMore: return Status::kMore;
        case RespLineReader::Status::kTooLong: return fail("a line is too long");
        case RespLineReader::Status::kLine: break;
    }
    const std::string_view line = line_.line();
    if (line.empty()) return fail("an empty line");
    if (++elements_ > bounds_.elements) return fail("too many elements");
    if (!hold(sizeof(RespReply))) return fail("too many bytes");
    return begin(line[0], line.substr(1));
}

RespReplyReader::Status RespReplyReader::begin(char kind, std::string_view rest) {
    switch (kind) {
        case '+': return begin_line(RespType::kStatus, rest);
        case '-': return begin_line(RespType::kError, rest);
        case '(': return begin_line(RespType::kBigNumber, rest);
        case ':':
        case ',':
        case '#': return begin_number(kind, rest);
        case '_': return rest.empty() ? complete({}) : fail("a null with something in it");
        case '$':
        case '=': return begin_text(RespType::kText, rest);
        case '!': return begin_text(RespType::kError, rest);
        case '*':
        case '~':
        case '%':
        case '>':
        case '|': return begin_aggregate(kind, rest);
        default: return fail(std::string("a reply cannot begin with '") + kind + "'");
    }
}

RespReplyReader::Status RespReplyReader::begin_line(RespType type, std::string_view line) {
    if (!hold(line.size())) return fail("too many bytes");
    return complete({.type = type, .text = RespText(std::string(line))});
}

RespReplyReader::Status RespReplyReader::begin_number(char kind, std::string_view text) {
    if (kind == '#') {
        if (text != "t" && text != "f") return fail("a boolean that is neither t nor f");
        return complete({.type = RespType::kInteger, .integer = text == "t" ? 1 : 0});
    }
    if (kind == ',') {
        const auto number = parse_double(text);
        if (!number) return fail("a double that is not a number");
        return complete({.type = RespType::kDouble, .number = *number});
    }
    const auto integer = parse_resp_integer(text);
    if (!integer) return fail("an integer that is not one");
    return complete({.type = RespType::kInteger, .integer = *integer});
}

RespReplyReader::Status RespReplyReader::begin_text(RespType type, std::string_view length) {
    const auto bytes = parse_resp_integer(length);
    if (bytes == -1) return complete({});
    if (!bytes || *bytes < 0 || *bytes > static_cast<std::int64_t>(bounds_.text_bytes))
        return fail("a string of invalid length");
    if (!hold(static_cast<std::size_t>(*bytes))) return fail("too many bytes");
    text_.begin(static_cast<std::size_t>(*bytes));
    text_type_ = type;
    stage_ = text_.complete() ? Stage::kTextEnd : Stage::kText;
    return Status::kMore;
}

RespReplyReader::Status RespReplyReader::begin_aggregate(char kind, std::string_view count) {
    const auto size = parse_resp_integer(count);
    if (size == -1 && kind == '*') return complete({});
    if (!size || *size < 0 || *size > static_cast<std::int64_t>(bounds_.elements))
        return fail("an array of invalid length");
    const bool in_pairs = kind == '%' || kind == '|';
    const std::size_t elements = static_cast<std::size_t>(*size) * (in_pairs ? 2 : 1);
    const bool is_attribute = kind == '|';
    if (elements == 0) {
        return is_attribute ? Status::kMore : complete({.type = aggregate_type(kind)});
    }
    if (open_.size() == bounds_.depth) return fail("arrays within arrays, too deep");
    Open& open = open_.emplace_back();
    open.reply.type = aggregate_type(kind);
    open.reply.elements.reserve(std::min(elements, kElementsAtOnce));
    open.missing = elements;
    open.is_attribute = is_attribute;
    return Status::kMore;
}

RespReplyReader::Status RespReplyReader::read_text(std::string_view& data) {
    if (stage_ == Stage::kText) {
        text_.collect(data);
        if (text_.complete()) stage_ = Stage::kTextEnd;
        return Status::kMore;
    }
    switch (line_.read(data, 0)) {
        case RespLineReader::Status::kMore: return Status::kMore;
        case RespLineReader::Status::kTooLong: return fail("a string is longer than its length");
        case RespLineReader::Status::kLine: break;
    }
    stage_ = Stage::kLine;
    return complete({.type = text_type_, .text = text_.take()});
}

RespReplyReader::Status RespReplyReader::complete(RespReply reply) {
    while (!open_.empty()) {
        Open& open = open_.back();
        open.reply.elements.push_back(std::move(reply));
        if (--open.missing > 0) return Status::kMore;
        const bool is_attribute = open.is_attribute;
        reply = std::move(open.reply);
        open_.pop_back();
        if (is_attribute) return Status::kMore;  // What it is about follows, in its place.
    }
    reply_ = std::move(reply);
    return Status::kReply;
}

bool RespReplyReader::hold(std::size_t bytes) {
    held_bytes_ += bytes;
    return held_bytes_ <= bounds_.total_bytes;
}

RespReplyReader::Status RespReplyReader::fail(std::string message) {
    stage_ = Stage::kFailed;
    open_ = {};
    held_bytes_ = 0;
    error_ = Error::invalid(std::move(message));
    return Status::kError;
}

}  // namespace sluice::kv
